"""What a start of Spark would fetch, fetched ahead of it, and Spark's classes kept for later starts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark_integration.archive.pipeline import archive
from spark_integration.archive.reading import read_archive
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.replay.pipeline import replay
from spark_integration.runtime.class_data import can_keep_classes, class_data_file, class_keeping_options
from spark_integration.runtime.fetching import check_java, jar_folders, read_java_version
from spark_integration.runtime.local_broker import run_broker
from spark_integration.runtime.maven import build_once
from spark_integration.runtime.packages import find_installation
from spark_integration.session import end_jvm, start_session
from spark_integration.topics.names import TargetNames

TOPIC, COPY = "classes", "copies"


@dataclass(frozen=True)
class PrepareSummary(Summary):
    """What exists after `prepare`; *class_data* is None for a Java that cannot keep its classes."""

    spark: str
    packages: str
    class_data: str | None

    def show(self) -> None:
        """Print it as a sentence."""
        classes = f"its classes are in {self.class_data}" if self.class_data else "this Java cannot keep its classes"
        print(f"Spark {self.spark} is ready with {self.packages}; {classes}")


def prepare(packages: Sequence[str] = (), say: Callable[[str], None] = lambda _: None) -> PrepareSummary:
    """Fetch the Kafka source's jars and those of *packages*, and keep the classes of a session that has them all.

    What exists already stays as it is. *say* receives a line if a session is started for its classes. No session may run
    in this process. Raises PipelineError.
    """
    wanted = list(dict.fromkeys(["kafka", *packages]))
    installation, version = find_installation(), read_java_version()
    check_java(installation, version)
    folders = jar_folders(installation, wanted)
    file: Path | None = None
    if can_keep_classes(version):
        file = class_data_file(version, installation, folders)
        build_once(file.parent, lambda partial: _keep_classes(wanted[1:], partial / file.name, say))
    return PrepareSummary(installation.spark, ", ".join(wanted), None if file is None else str(file))


def _keep_classes(packages: Sequence[str], file: Path, say: Callable[[str], None]) -> None:
    options = {"spark.driver.extraJavaOptions": " ".join(class_keeping_options(file))}
    with tempfile.TemporaryDirectory() as folder, run_broker(Path(folder)) as bootstrap:
        spark = start_session("kafkacompat prepare", packages=packages, configs=options, say=say)
        try:
            for format in ("parquet", *packages):
                _use_pipelines(spark, bootstrap, Path(folder) / format, format)
        finally:
            spark.stop()
            end_jvm()
    if not file.exists():
        raise PipelineError(f"Java has not kept its classes in {file.parent.parent}: is there room for 250 MB?")


def _use_pipelines(spark: SparkSession, bootstrap: str, folder: Path, format: str) -> None:
    """Do a little of everything that the pipelines do, so that Spark loads the classes that they need."""
    cluster = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.createDataFrame([(format, "value")], "key string, value string")
    frame.groupBy("key").count().collect()
    frame.write.format("kafka").options(**cluster, topic=TOPIC).save()
    source = {**cluster, "subscribe": TOPIC, "startingOffsets": "earliest"}
    archive(spark, source, str(folder / "archive"), StreamOptions(str(folder / "checkpoint")), format=format)
    read_archive(spark, str(folder / "archive")).collect()
    replay(spark, str(folder / "archive"), cluster, names=TargetNames(mapped={TOPIC: f"{COPY}-{format}"}))
