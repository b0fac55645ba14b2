"""`kafkacompat spark archive`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from spark_integration.archive.settings import FORMATS, PARTITION_BY, FileOptions, check_partition_by
from spark_integration.command_line.options import (
    TARGET_GROUP,
    SessionOptions,
    collect_options,
    option,
    session_options,
    source_options,
    stream_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.runtime.packages import packages_of_format

SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
EXAMPLE = """\
kafkacompat spark archive --bootstrap-server 127.0.0.1:9092 --subscribe orders,payments \\
    --path /data/archive --checkpointLocation /data/archive-checkpoint
"""


def parse_size(text: str) -> int:
    """Return the bytes of a size as Spark writes it (``128m``); raises PipelineError."""
    match = re.fullmatch(r"(\d+)([kmg]?)b?", text.lower())
    if not match or not int(match[1]):
        raise PipelineError(f"{text!r} is no size: give one like 128m")
    return int(match[1]) * SIZE_UNITS[match[2]]


def _collect_files(values: dict[str, Any]) -> FileOptions:
    counts = [values.pop(name) for name in ("tasks", "max_records", "merge")]
    return FileOptions(counts[0], counts[1], counts[2], parse_size(values.pop("target")))


file_options = collect_options(
    "files",
    [
        option(
            "--tasks",
            type=click.IntRange(min=0),
            default=0,
            group=TARGET_GROUP,
            help="Tasks that write a batch, each one file in each folder, whatever --minPartitions is "
            "(0: as many as Spark runs at a time).",
        ),
        option(
            "--maxRecordsPerFile",
            "max_records",
            type=click.IntRange(min=0),
            default=0,
            group=TARGET_GROUP,
            help="Largest number of records of a file (0: any); Iceberg has no such option.",
        ),
        option(
            "--mergeFiles",
            "merge",
            type=click.IntRange(min=0),
            default=0,
            group=TARGET_GROUP,
            help="Merge the small files of a folder once there are this many (of a table: after this many batches; "
            "0: never).",
        ),
        option(
            "--targetFileSize",
            "target",
            default="128m",
            group=TARGET_GROUP,
            help="Size of merged files; a file is small below half of it.",
        ),
    ],
    _collect_files,
)


@pipeline_command("archive", EXAMPLE)
@source_options()
@option(
    "--path",
    required=True,
    metavar="DIR",
    help="Folder of the archive: a new one, an empty one, or an archive (any Hadoop path).",
)
@option(
    "--format",
    type=click.Choice(FORMATS),
    group=TARGET_GROUP,
    help="Format of the archive. [default: that of the archive in --path; parquet for a new one]",
)
@option(
    "--partitionBy",
    "partition_by",
    metavar="COLUMNS",
    group=TARGET_GROUP,
    help="Columns that folders are named by, from topic, partition and date. "
    f"[default: those of the archive in --path; {','.join(PARTITION_BY)} for a new one]",
)
@file_options
@stream_options
@session_options
def command(
    session: SessionOptions,
    source: Mapping[str, str],
    stream: StreamOptions,
    path: str,
    format: str | None,
    partition_by: str | None,
    files: FileOptions,
) -> Summary:
    """Archive topics as Parquet, Delta or Iceberg: every record once, with key, headers, offset and timestamp.

    A run that was stopped or killed continues when the same command is given again, even with a new checkpoint: the
    archive itself knows which offsets it holds. Any reader of the format can read it, and so can read_archive.
    """
    names = check_partition_by(partition_by.split(",")) if partition_by is not None else None
    check_before_start(
        session,
        clusters={"--bootstrap-server": source},
        written={"--path": path, "--checkpointLocation": stream.checkpoint_location},
    )
    from spark_integration.archive.pipeline import archive

    with spark_session("archive", session, packages_of_format(format)) as spark:
        return archive(spark, source, path, stream, format=format, partition_by=names, files=files)
