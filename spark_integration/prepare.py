"""`kafkacompat spark prepare`: what a start of Spark would fetch, ahead of it, and Spark's classes kept for later starts.

To be run once where an image is built, or on a machine on which Spark is started often.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from pyspark.sql import SparkSession

from spark_integration.archive import archive, read_archive
from spark_integration.class_data import can_be_kept, class_data_of, keeping_options
from spark_integration.command import pipeline
from spark_integration.console import Summary, console
from spark_integration.errors import PipelineError
from spark_integration.fetching import check_java, jar_folders, java_version
from spark_integration.maven import build_once
from spark_integration.names import Names
from spark_integration.packages import PACKAGES, installed
from spark_integration.query import StreamOptions
from spark_integration.replay import replay
from spark_integration.serving import serving
from spark_integration.session import end_jvm, start_session

TOPIC, COPY = "classes", "copies"


@dataclass(frozen=True)
class PrepareSummary(Summary):
    """What is there now; *class_data* is None for a Java that cannot keep its classes."""

    spark: str
    packages: str
    class_data: str | None


def prepare(packages: Sequence[str] = ()) -> PrepareSummary:
    """Fetch the Kafka source's jars and those of *packages*, and keep the classes of a session that has them all.

    What is there already is left as it is. No session may run in this process. Raises PipelineError.
    """
    wanted = list(dict.fromkeys(["kafka", *packages]))
    installation, version = installed(), java_version()
    check_java(installation, version)
    folders = jar_folders(installation, wanted)
    file: Path | None = None
    if can_be_kept(version):
        file = class_data_of(version, installation, folders)
        build_once(file.parent, lambda partial: _keep_classes(wanted[1:], partial / file.name))
    return PrepareSummary(installation.spark, ", ".join(wanted), None if file is None else str(file))


def _keep_classes(packages: Sequence[str], file: Path) -> None:
    options = {"spark.driver.extraJavaOptions": " ".join(keeping_options(file))}
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as bootstrap:
        spark = start_session("kafkacompat prepare", packages=packages, configs=options, say=console().print)
        try:
            for format in ("parquet", *packages):
                _work(spark, bootstrap, Path(folder) / format, format)
        finally:
            spark.stop()
            end_jvm()
    if not file.exists():
        raise PipelineError(f"Java has not kept its classes in {file.parent.parent}: is there room for 250 MB?")


def _work(spark: SparkSession, bootstrap: str, folder: Path, format: str) -> None:
    """Do something of all that the pipelines do, so that Spark loads what they need."""
    cluster = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.createDataFrame([(format, "value")], "key string, value string")
    frame.groupBy("key").count().collect()
    frame.write.format("kafka").options(**cluster, topic=TOPIC).save()
    source = {**cluster, "subscribe": TOPIC, "startingOffsets": "earliest"}
    archive(spark, source, str(folder / "archive"), StreamOptions(str(folder / "checkpoint")), format=format)
    read_archive(spark, str(folder / "archive")).collect()
    replay(spark, str(folder / "archive"), cluster, names=Names(mapped={TOPIC: f"{COPY}-{format}"}))


@pipeline("prepare")
@click.option(
    "--package",
    "packages",
    type=click.Choice([name for name in PACKAGES if name != "kafka"]),
    multiple=True,
    help="What sessions are to have beside the Kafka source; many times.",
)
def command(packages: tuple[str, ...]) -> PrepareSummary:
    """Fetch the jars that fit the installed pyspark, and keep Spark's classes: it starts sooner from now on.

    For images of machines, and where Spark is started often. Takes most of a minute and 200 MB for each set of packages.
    """
    return prepare(packages)
