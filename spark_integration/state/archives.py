"""Reading the manifest of an archive through Hadoop's file systems."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.state.files import Files
from spark_integration.state.manifest import (
    COMMITS,
    DESCRIPTION,
    Commit,
    Description,
    Manifest,
    commit_of_json,
    commits_in_order,
)


def is_archive(spark: SparkSession, path: str) -> bool:
    """Return whether an archive lies at *path*."""
    return Files(spark, path).exists(DESCRIPTION)


def read_manifest(spark: SparkSession, path: str) -> Manifest:
    """Read the manifest of the archive at *path* (any Hadoop path); raises PipelineError where there is none."""
    files = Files(spark, path)
    if not files.exists(DESCRIPTION):
        raise PipelineError(f"there is no archive in {path}: give the --path that `kafkacompat spark archive` wrote to")
    fields = json.loads(files.read(DESCRIPTION))
    description = Description(fields["format"], tuple(fields["partition_by"]), fields["archive_id"])
    try:
        return Manifest(description, commits_in_order(_read_commits(spark, files), path))
    except PipelineError:
        # A run that writes may just have put one commit in the place of those that were to be read.
        return Manifest(description, commits_in_order(_read_commits(spark, files), path))


def _read_commits(spark: SparkSession, files: Files) -> list[Commit]:
    if not files.names(COMMITS):
        return []
    # By Spark, in parallel: there may be a file for each micro-batch of years.
    reader = spark.read.option("ignoreMissingFiles", "true")
    lines = reader.text(files.path(COMMITS), wholetext=True).select("value").collect()
    return [commit_of_json(line.value) for line in lines]
