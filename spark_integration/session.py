"""A Spark session that can read from and write to Kafka, on this machine or on a cluster."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_integration.class_data import class_data_of, java_options
from spark_integration.errors import PipelineError
from spark_integration.fetching import check_java, jar_folders, java_version
from spark_integration.packages import PACKAGES, Installation, cache, configs_of, coordinates, installed

LOOPBACK = "127.0.0.1"
PACKAGE = Path(__file__).resolve().parent
MASTERS = r"local(\[[^]]+\])?|local-cluster\[[^]]+\]|spark://[^:/,]+:\d+(,[^:/,]+:\d+)*|yarn|k8s://.+"

# Settings of which the user's value and ours stand side by side, and what stands between them.
JOINED = {
    "spark.jars": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraClassPath": ":",
    "spark.driver.extraJavaOptions": " ",
}


def _to_standard_error(line: str) -> None:
    print(line, file=sys.stderr)


def start_session(
    name: str,
    *,
    master: str = "local[*]",
    memory: str = "1g",
    shuffle_partitions: int | None = None,
    packages: Sequence[str] = (),
    configs: Mapping[str, str] | None = None,
    say: Callable[[str], None] = _to_standard_error,
) -> SparkSession:
    """Start Spark with the Kafka source and *packages* ("delta", "iceberg"), and tell *say* in a line what was started.

    Their jars are fetched the first time and kept (`spark_integration.packages`). A master other than ``local`` is
    sent the jars. The executors get this package's own code. *memory* is the driver's; *configs* are Spark's and go
    before all else. A session that already runs in this process is used as it is. Times are shown in UTC. Raises
    PipelineError.
    """
    wanted = list(dict.fromkeys(["kafka", *packages]))
    if SparkContext._active_spark_context is None:
        session = _start(name, master, memory, wanted, dict(configs or {}), say)
    else:
        session = _running(wanted, say)
    if shuffle_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", shuffle_partitions)
    session.sparkContext.addPyFile(str(_zip_of_code(session)))
    return session


def check_words(master: str, memory: str) -> None:
    """Raise PipelineError where a master or an amount of memory is not as Spark and the JVM write it."""
    if not re.fullmatch(MASTERS, master):
        raise PipelineError(f"{master!r} is no master: give local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT")
    if not re.fullmatch(r"\d+[kmgt]", memory, re.IGNORECASE):
        raise PipelineError(f"{memory!r} is no amount of memory: give a number and m or g, such as 2g")


def is_local(master: str) -> bool:
    """Return whether *master* means threads of this process's own JVM."""
    return master == "local" or master.startswith("local[")


def _start(
    name: str,
    master: str,
    memory: str,
    packages: Sequence[str],
    configs: dict[str, str],
    say: Callable[[str], None],
) -> SparkSession:
    check_words(master, memory)
    installation = installed()
    version = java_version()
    java = check_java(installation, version)
    folders = jar_folders(installation, packages)
    class_data = class_data_of(version, installation, folders)
    _end_idle_jvm(folders)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in merged(settings_of(master, memory, packages, folders, java_options(class_data)), configs).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if is_local(master) and "spark.sql.shuffle.partitions" not in configs:
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    say(_account(installation, java, packages, folders, master, memory))
    return session


def _end_idle_jvm(folders: Sequence[Path]) -> None:
    """End the JVM that a stopped session of this process has left, if it lacks jars: its class path is for ever."""
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


def _account(
    installation: Installation, java: int, packages: Sequence[str], folders: Sequence[Path], master: str, memory: str
) -> str:
    what = f"Spark {installation.spark} (Scala {installation.scala}, Java {java}) with {', '.join(packages)}"
    return f"{what} from {folders[0].parent}, {master}, {memory}"


def settings_of(
    master: str, memory: str, packages: Sequence[str], folders: Sequence[Path], java_options: Sequence[str] = ()
) -> dict[str, str]:
    """Return Spark's settings for a master, with the jars of *folders* and what their *packages* need."""
    logging = f"-Dlog4j2.configurationFile={(PACKAGE / 'log4j2.properties').as_uri()}"
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join([logging, *java_options]),
        "spark.driver.extraClassPath": ":".join(f"{folder}/*" for folder in folders),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **configs_of(packages),
    }
    if importlib.util.find_spec("pyarrow"):
        settings["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    return settings | (_local_settings() if is_local(master) else _cluster_settings(folders))


def merged(settings: Mapping[str, str], configs: Mapping[str, str]) -> dict[str, str]:
    """Return our settings with the user's, which go before ours or, where both are needed, stand beside them."""
    both = JOINED.keys() & settings.keys() & configs.keys()
    return {**settings, **configs, **{key: f"{settings[key]}{JOINED[key]}{configs[key]}" for key in both}}


def _local_settings() -> dict[str, str]:
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.sql.warehouse.dir": str(cache() / "warehouse"),
        # Delta reads its own log by 50 tasks otherwise.
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def _cluster_settings(folders: Sequence[Path]) -> dict[str, str]:
    """Send the jars to the executors; what SPARK_LOCAL_IP says of the driver's address is for Spark to obey."""
    return {"spark.jars": ",".join(str(path) for folder in folders for path in sorted(folder.glob("*.jar")))}


def _running(packages: Sequence[str], say: Callable[[str], None]) -> SparkSession:
    """Return the session that somebody else started; raises PipelineError when it lacks a package.

    What it got by ``spark.jars.packages`` is not on its JVM's class path, so py4j has to look where Spark does.
    """
    session: SparkSession = SparkSession.builder.getOrCreate()
    jvm: Any = session.sparkContext._jvm
    reflection = jvm.py4j.reflection
    reflection.ReflectionUtil.setClassLoadingStrategy(reflection.CurrentThreadClassLoadingStrategy())
    for package in packages:
        try:
            reflection.ReflectionUtil.classForName(PACKAGES[package].class_name)
        except Py4JError:
            raise PipelineError(lacking(package, installed())) from None
    say(f"Spark {session.version} that runs in this process already, {session.sparkContext.master}")
    return session


def lacking(package: str, installation: Installation) -> str:
    """Say how to start a session oneself that has *package*."""
    return (
        f"the Spark session that runs in this process lacks the package {package}: stop it first, or start it with "
        f"spark.jars.packages={','.join(coordinates(installation, package))}"
    )


def _zip_of_code(session: SparkSession) -> Path:
    """Pack this package for the executors, into a folder that Spark removes when it ends."""
    path = Path(str(session.sparkContext._temp_dir)) / f"{PACKAGE.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for source in sorted(PACKAGE.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                packed.write(source, source.relative_to(PACKAGE.parent))
    return path
