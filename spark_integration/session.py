"""A Spark session that can read from and write to Kafka, on this machine or on a cluster."""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.runtime.class_data import class_data_file, class_data_options
from spark_integration.runtime.fetching import check_java, jar_folders, read_java_version
from spark_integration.runtime.packages import PACKAGES, SparkInstallation, find_installation, package_coordinates
from spark_integration.runtime.settings import (
    LOOPBACK,
    check_master_and_memory,
    is_local,
    is_secret,
    merge_settings,
    session_settings,
)

PACKAGE = Path(__file__).resolve().parent
# Spark's launcher adds this module for all of Java 17 and later, and Java has no option against its warning.
UNWANTED_LINE = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
STANDARD_ERROR = 2


def _print_to_standard_error(line: str) -> None:
    print(line, file=sys.stderr)


def start_session(
    name: str,
    *,
    master: str = "local[*]",
    memory: str = "1g",
    shuffle_partitions: int | None = None,
    packages: Sequence[str] = (),
    configs: Mapping[str, str] | None = None,
    say: Callable[[str], None] = _print_to_standard_error,
) -> SparkSession:
    """Start Spark with the Kafka source and *packages* ("delta", "iceberg"), and pass a line about it to *say*.

    The first start fetches the jars and keeps them (`spark_integration.runtime.packages`). A master other than ``local``
    receives the jars, and executors receive this package's own code. *memory* is the driver's. *configs* are Spark's
    and override our settings. A session that already runs in this process is returned as it is. Times are shown in UTC.
    Raises PipelineError.
    """
    wanted = list(dict.fromkeys(["kafka", *packages]))
    if SparkContext._active_spark_context is None:
        session = _start_session(name, master, memory, wanted, dict(configs or {}), say)
    else:
        session = _running_session(wanted, say)
    if shuffle_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", shuffle_partitions)
    session.sparkContext.addPyFile(str(_zip_code(session)))
    return session


def _start_session(
    name: str,
    master: str,
    memory: str,
    packages: Sequence[str],
    configs: dict[str, str],
    say: Callable[[str], None],
) -> SparkSession:
    check_master_and_memory(master, memory)
    installation = find_installation()
    version = read_java_version()
    java = check_java(installation, version)
    folders = jar_folders(installation, packages)
    class_data = class_data_file(version, installation, folders)
    _end_idle_jvm(folders)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = session_settings(master, memory, packages, folders, class_data_options(class_data))
    session = _start_spark(name, master, merge_settings(own, configs))
    session.sparkContext.setLogLevel("ERROR")
    if is_local(master) and "spark.sql.shuffle.partitions" not in configs:
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    say(
        f"Spark {installation.spark} (Scala {installation.scala}, Java {java}) with {', '.join(packages)} "
        f"from {folders[0].parent}, {master}, {memory}"
    )
    return session


def _start_spark(name: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    if SparkContext._gateway is None:
        # The command line of the JVM holds these settings. Secrets follow once it runs, on no command line.
        shown = [(key, value) for key, value in settings.items() if not is_secret(key)]
        conf = SparkConf().setAll([("spark.master", master), ("spark.app.name", name), *shown])
        with _filtered_standard_error() as stderr:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf, {"stderr": stderr}))
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _filtered_standard_error() -> Iterator[int]:
    """Yield a file descriptor for a JVM's standard error, which reaches ours but for `UNWANTED_LINE`.

    The lines of a JVM that fails to start have arrived when the block ends.
    """
    read, write = os.pipe()
    copier = threading.Thread(target=_copy_lines, args=(read,), name="spark-stderr", daemon=True)
    copier.start()
    try:
        yield write
    except BaseException:
        os.close(write)
        copier.join()
        raise
    os.close(write)


def _copy_lines(source: int) -> None:
    with os.fdopen(source, "rb") as lines:
        for line in lines:
            if line != UNWANTED_LINE:
                os.write(STANDARD_ERROR, line)


def _end_idle_jvm(folders: Sequence[Path]) -> None:
    """End the JVM of a session that was stopped if its class path, which cannot change, lacks jars."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    class_path = str(gateway.jvm.java.lang.System.getProperty("java.class.path"))
    if all(f"{folder}/" in class_path for folder in folders):
        return
    end_jvm()


def end_jvm() -> None:
    """End the JVM of this process, whose session has been stopped, and wait until it is gone."""
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def _running_session(packages: Sequence[str], say: Callable[[str], None]) -> SparkSession:
    """Return the session that the caller's program started; raises PipelineError if it lacks a package.

    Classes from ``spark.jars.packages`` are not on the JVM's class path, so py4j has to search where Spark does.
    """
    session: SparkSession = SparkSession.builder.getOrCreate()
    jvm: Any = session.sparkContext._jvm
    reflection = jvm.py4j.reflection
    reflection.ReflectionUtil.setClassLoadingStrategy(reflection.CurrentThreadClassLoadingStrategy())
    for package in packages:
        try:
            reflection.ReflectionUtil.classForName(PACKAGES[package].class_name)
        except Py4JError:
            raise PipelineError(missing_package_advice(package, find_installation())) from None
    say(f"Spark {session.version}, which runs in this process already, {session.sparkContext.master}")
    return session


def missing_package_advice(package: str, installation: SparkInstallation) -> str:
    """Return a sentence that says how to start a session that has *package*."""
    return (
        f"the Spark session that runs in this process lacks the package {package}: stop it first, or start it with "
        f"spark.jars.packages={','.join(package_coordinates(installation, package))}"
    )


def _zip_code(session: SparkSession) -> Path:
    """Pack this package for the executors, into a folder that Spark removes when it ends."""
    path = Path(str(session.sparkContext._temp_dir)) / f"{PACKAGE.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for source in sorted(PACKAGE.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                packed.write(source, source.relative_to(PACKAGE.parent))
    return path
