"""Reading the manifest of an archive through Hadoop's file systems."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import (
    COMMITS,
    DESCRIPTION,
    ArchiveCommit,
    ArchiveDescription,
    ArchiveManifest,
    order_commits,
    parse_commit,
)


def is_archive(spark: SparkSession, path: str) -> bool:
    """Return whether an archive lies at *path*."""
    return HadoopFiles(spark, path).exists(DESCRIPTION)


def read_manifest(spark: SparkSession, path: str) -> ArchiveManifest:
    """Read the manifest of the archive at *path* (any Hadoop path); raises PipelineError if there is none."""
    files = HadoopFiles(spark, path)
    if not files.exists(DESCRIPTION):
        raise PipelineError(f"there is no archive in {path}: give the --path that `kafkacompat spark archive` wrote to")
    fields = json.loads(files.read(DESCRIPTION))
    description = ArchiveDescription(fields["format"], tuple(fields["partition_by"]), fields["archive_id"])
    try:
        return ArchiveManifest(description, order_commits(_read_commits(spark, files), path))
    except PipelineError:
        # A running archive may just have replaced the commits that were being read by one.
        return ArchiveManifest(description, order_commits(_read_commits(spark, files), path))


def _read_commits(spark: SparkSession, files: HadoopFiles) -> list[ArchiveCommit]:
    if not files.names(COMMITS):
        return []
    # Spark reads them in parallel: there may be a file for each micro-batch of years.
    reader = spark.read.option("ignoreMissingFiles", "true")
    lines = reader.text(files.path(COMMITS), wholetext=True).select("value").collect()
    return [parse_commit(line.value) for line in lines]
