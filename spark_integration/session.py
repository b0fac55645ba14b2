"""A Spark session that can read from and write to Kafka, on this machine or on a cluster."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.fetching import check_java, jar_folders
from spark_integration.packages import Installation, cache, configs_of, installed

LOOPBACK = "127.0.0.1"
PACKAGE = Path(__file__).resolve().parent
NEEDED_CLASS = "org.apache.kafka.clients.admin.Admin"


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
    sent the jars and this package's own code. *memory* is the driver's; *configs* are Spark's and go before all else.
    A session that already runs in this process is used as it is. Times are shown in UTC. Raises PipelineError.
    """
    session = _running(say) if _is_running() else _started(name, master, memory, packages, dict(configs or {}), say)
    if shuffle_partitions is not None:
        session.conf.set("spark.sql.shuffle.partitions", shuffle_partitions)
    _make_classes_visible(session)
    session.sparkContext.addPyFile(str(_zip_of_code(session)))
    return session


def is_local(master: str) -> bool:
    """Return whether *master* means threads of this process's own JVM."""
    return master == "local" or master.startswith("local[")


def _is_running() -> bool:
    return SparkContext._active_spark_context is not None


def _running(say: Callable[[str], None]) -> SparkSession:
    session: SparkSession = SparkSession.builder.getOrCreate()
    say(f"Spark {session.version} that runs already, {session.sparkContext.master}")
    return session


def _started(
    name: str,
    master: str,
    memory: str,
    packages: Sequence[str],
    configs: dict[str, str],
    say: Callable[[str], None],
) -> SparkSession:
    installation = installed()
    java = check_java(installation)
    wanted = list(dict.fromkeys(["kafka", *packages]))
    folders = jar_folders(installation, wanted)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**settings_of(master, memory, wanted, folders), **configs}
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if is_local(master) and "spark.sql.shuffle.partitions" not in configs:
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    say(_account(installation, java, wanted, folders, master, memory))
    return session


def _account(
    installation: Installation, java: int, packages: Sequence[str], folders: Sequence[Path], master: str, memory: str
) -> str:
    what = f"Spark {installation.spark} (Scala {installation.scala}, Java {java}) with {', '.join(packages)}"
    return f"{what} from {folders[0].parent}, {master}, {memory}"


def settings_of(master: str, memory: str, packages: Sequence[str], folders: Sequence[Path]) -> dict[str, str]:
    """Return Spark's settings for a master, with the jars of *folders* and what their *packages* need."""
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.extraClassPath": ":".join(f"{folder}/*" for folder in folders),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **configs_of(packages),
    }
    if importlib.util.find_spec("pyarrow"):
        settings["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    return settings | (_local_settings() if is_local(master) else _cluster_settings(folders))


def _local_settings() -> dict[str, str]:
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.sql.warehouse.dir": str(cache() / "warehouse"),
    }


def _cluster_settings(folders: Sequence[Path]) -> dict[str, str]:
    """Send the jars to the executors; what SPARK_LOCAL_IP says of the driver's address is for Spark to obey."""
    return {"spark.jars": ",".join(str(path) for folder in folders for path in sorted(folder.glob("*.jar")))}


def _make_classes_visible(session: SparkSession) -> None:
    """Let py4j find classes of ``spark.jars`` and ``spark.jars.packages`` too, which are not on the JVM's class path."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    reflection = jvm.py4j.reflection
    reflection.ReflectionUtil.setClassLoadingStrategy(reflection.CurrentThreadClassLoadingStrategy())
    try:
        reflection.ReflectionUtil.classForName(NEEDED_CLASS)
    except Exception as problem:
        raise PipelineError(
            "the Spark session that runs here has no Kafka source: stop it, or start it with spark.jars.packages="
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{session.version}"
        ) from problem


def _zip_of_code(session: SparkSession) -> Path:
    """Pack this package for the executors, into a folder that Spark removes when it ends."""
    path = Path(str(session.sparkContext._temp_dir)) / f"{PACKAGE.name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for source in sorted(PACKAGE.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                packed.write(source, source.relative_to(PACKAGE.parent))
    return path
