"""`kafkacompat spark replay`."""

from __future__ import annotations

from typing import Any

import click

from spark_integration.archive.settings import FORMATS
from spark_integration.command_line.options import (
    OTHER_GROUP,
    SOURCE_GROUP,
    TARGET_GROUP,
    SessionOptions,
    cluster_options,
    names_options,
    option,
    session_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.queries.summary import Summary
from spark_integration.replay.settings import BY_KEY, KEEP, ReplaySelection, parse_time
from spark_integration.runtime.packages import packages_of_format
from spark_integration.topics.names import TargetNames
from spark_integration.topics.offsets import parse_offsets

EXAMPLE = """\
kafkacompat spark replay --path /data/archive --bootstrap-server 127.0.0.1:9092 --prefix replayed- \\
    --topics orders --startingTimestamp 2026-11-22T03:45:00
"""


@pipeline_command("replay", EXAMPLE)
@option("--path", required=True, metavar="DIR", help="Folder of the archive.")
@cluster_options("target")
@option(
    "--format",
    type=click.Choice(FORMATS),
    group=SOURCE_GROUP,
    help="Format that the archive must have; Delta and Iceberg need it.",
)
@option(
    "--topics",
    metavar="A,B",
    group=SOURCE_GROUP,
    help="Topics of the archive, separated by commas. [default: all]",
)
@option(
    "--startingOffsets",
    "starting_offsets",
    metavar="JSON",
    group=SOURCE_GROUP,
    help='First offsets that are replayed: {"topic":{"0":23}}.',
)
@option(
    "--endingOffsets",
    "ending_offsets",
    metavar="JSON",
    group=SOURCE_GROUP,
    help='Offsets before which the replay ends: {"topic":{"0":50}}.',
)
@option(
    "--startingTimestamp",
    "starting_timestamp",
    metavar="TIME",
    group=SOURCE_GROUP,
    help="Replay records of this time or later: milliseconds since 1970, or 2026-11-22T03:45:00 (UTC).",
)
@option(
    "--endingTimestamp",
    "ending_timestamp",
    metavar="TIME",
    group=SOURCE_GROUP,
    help="Replay records before this time.",
)
@names_options
@option(
    "--partitioner",
    type=click.Choice([KEEP, BY_KEY]),
    default=KEEP,
    group=TARGET_GROUP,
    help="Whether records keep their partition or get that of their key's hash.",
)
@option(
    "--rate",
    type=click.IntRange(min=1),
    group=TARGET_GROUP,
    help="Largest number of records a second, in the order of their times. [default: no limit]",
)
@option("--again", is_flag=True, group=TARGET_GROUP, help="Write records even if the target already has them.")
@option("--dry-run", is_flag=True, group=OTHER_GROUP, help="Report what would be written, and write nothing.")
@session_options
def command(
    session: SessionOptions,
    target: dict[str, str],
    names: TargetNames,
    path: str,
    format: str | None,
    topics: str | None,
    starting_offsets: str | None,
    ending_offsets: str | None,
    starting_timestamp: str | None,
    ending_timestamp: str | None,
    **how: Any,
) -> Summary:
    """Write an archive back into topics, each partition in its order.

    Records keep partition, key, value and headers; further headers tell where and when each was first written. Missing
    topics are created. A run that was stopped continues when the same command is given again: records that the target
    has are not written again, unless they lie after a missing one.
    """
    selection = ReplaySelection(
        tuple(name.strip() for name in topics.split(",")) if topics else None,
        parse_offsets(starting_offsets) if starting_offsets else {},
        parse_offsets(ending_offsets) if ending_offsets else {},
        parse_time(starting_timestamp) if starting_timestamp else None,
        parse_time(ending_timestamp) if ending_timestamp else None,
    )
    check_before_start(session, clusters={"--bootstrap-server": target}, archives={"--path": path})
    from spark_integration.replay.pipeline import replay

    with spark_session("replay", session, packages_of_format(format)) as spark:
        return replay(spark, path, target, format=format, selection=selection, names=names, **how)
