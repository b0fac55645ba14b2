"""`kafkacompat spark archive`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from spark_integration.archive.layout import PARTITION_BY, FileOptions
from spark_integration.archive.run import ArchiveSummary, archive
from spark_integration.command import pipeline, spark_session
from spark_integration.errors import PipelineError
from spark_integration.options import SessionOptions, grouped, session_options, source_options, stream_options
from spark_integration.packages import of_format
from spark_integration.query import StreamOptions

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_of(text: str) -> int:
    """Read a size as Spark writes it (``128m``); raises PipelineError."""
    found = re.fullmatch(r"(\d+)([kmg]?)b?", text.lower())
    if not found or not int(found[1]):
        raise PipelineError(f"{text!r} is no size: give one like 128m")
    return int(found[1]) * UNITS[found[2]]


def _files(values: dict[str, Any]) -> FileOptions:
    counts = [values.pop(name) for name in ("tasks", "max_records", "merge")]
    return FileOptions(counts[0], counts[1], counts[2], size_of(values.pop("target")))


file_options = grouped(
    "files",
    [
        click.option(
            "--tasks",
            type=click.IntRange(min=0),
            default=0,
            help="Tasks that read and write a batch, each one file in each folder, whatever --minPartitions says "
            "(0: as many as Spark runs at a time).",
        ),
        click.option(
            "--maxRecordsPerFile",
            "max_records",
            type=click.IntRange(min=0),
            default=0,
            help="At most that many records a file (0: any number); Iceberg has no such option.",
        ),
        click.option(
            "--mergeFiles",
            "merge",
            type=click.IntRange(min=0),
            default=0,
            help="Merge small files once a folder has that many (a table: after that many batches; 0: never).",
        ),
        click.option(
            "--targetFileSize",
            "target",
            default="128m",
            help="What merged files are to have; small is less than half of it.",
        ),
    ],
    _files,
)


@pipeline("archive")
@session_options
@source_options()
@stream_options
@click.option("--path", required=True, help="The archive's folder, new, empty or an archive already (any Hadoop path).")
@click.option(
    "--format",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    help="Default: the archive's own; parquet for a new one.",
)
@click.option(
    "--partitionBy",
    "partition_by",
    metavar="COLUMNS",
    help=f"Columns of topic, partition, date that folders are named by (new archives: {','.join(PARTITION_BY)}).",
)
@file_options
def command(
    session: SessionOptions,
    source: Mapping[str, str],
    stream: StreamOptions,
    path: str,
    format: str | None,
    partition_by: str | None,
    files: FileOptions,
) -> ArchiveSummary:
    """Bring topics into Parquet, Delta or Iceberg: every record once, with key, headers, offset and timestamp.

    Stopped or killed at any moment, the same command goes on where it was; with a new checkpoint, too, as the archive
    itself knows which offsets it has. Read it with any reader of the format, or with read_archive.
    """
    names = partition_by.split(",") if partition_by is not None else None
    with spark_session("archive", session, of_format(format)) as spark:
        return archive(spark, source, path, stream, format=format, partition_by=names, files=files)
