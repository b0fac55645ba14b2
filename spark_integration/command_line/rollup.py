"""`kafkacompat spark rollup`."""

from __future__ import annotations

from typing import Any

import click

from spark_integration.command_line.options import (
    SOURCE_GROUP,
    TARGET_GROUP,
    SessionOptions,
    option,
    session_options,
    source_options,
    stream_options,
)
from spark_integration.command_line.running import check_before_start, pipeline_command, spark_session
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.rollup.measures import AGGREGATES
from spark_integration.rollup.settings import FORMATS, MODES, RollupSettings

EXAMPLE = """\
kafkacompat spark rollup --bootstrap-server 127.0.0.1:9092 --subscribe orders \\
    --checkpointLocation /data/rollup-checkpoint --topic orders-by-minute --path /data/orders-by-minute \\
    --window '1 minute' --watermark '5 minutes' --dimensions country --measures 'count,sum(amount) as revenue'
"""


@pipeline_command("rollup", EXAMPLE)
@source_options()
@option(
    "--window",
    required=True,
    help="Length of the windows, like '1 minute'.",
)
@option(
    "--watermark",
    required=True,
    help="How much later than the latest event another event may arrive and still count, like '5 minutes'.",
)
@option("--topic", required=True, help="Topic of the results by key; a missing one is created, compacted.")
@option("--path", required=True, metavar="DIR", help="Folder of the table of results.")
@option(
    "--time-field",
    metavar="PATH",
    group=SOURCE_GROUP,
    help="Path of an event's time in the value: ISO 8601, or milliseconds since 1970. [default: the record's timestamp]",
)
@option("--slide", help="Interval at which windows begin. [default: each begins where the one before it ends]")
@option(
    "--dimensions",
    default="",
    metavar="PATHS",
    help="Paths in the value, separated by commas: each combination of their values has a result of its own.",
)
@option(
    "--measures",
    default="count",
    help=f"Figures of each result, from {', '.join(AGGREGATES)}; like 'sum(amount),count,max(user.age) as oldest'.",
)
@option(
    "--mode",
    type=click.Choice(MODES),
    default="append",
    help="When a window is written: once it is over (append), or with each change (update).",
)
@option(
    "--retention",
    help="Age at which windows leave the table and get tombstones in the topic. [default: none do]",
)
@option(
    "--format",
    type=click.Choice(FORMATS),
    default="parquet",
    group=TARGET_GROUP,
    help="Format of the table; --mode update needs delta.",
)
@option("--partitions", type=int, default=1, group=TARGET_GROUP, help="Partitions of the topics that are created.")
@option("--dead-topic", group=TARGET_GROUP, help="Topic of records that cannot be parsed; a missing one is created.")
@option("--any-cleanup-policy", is_flag=True, group=TARGET_GROUP, help="Accept a --topic that is not compacted.")
@stream_options
@session_options
def command(session: SessionOptions, source: dict[str, str], stream: StreamOptions, **options: Any) -> Summary:
    """Count JSON events by windows of time, into a compacted topic and a table."""
    settings = RollupSettings(**options)
    settings.check()
    check_before_start(
        session,
        clusters={"--bootstrap-server": source},
        written={"--path": settings.path, "--checkpointLocation": stream.checkpoint_location},
    )
    from spark_integration.rollup.pipeline import rollup

    packages = ("delta",) if settings.format == "delta" else ()
    with spark_session("rollup", session, packages) as spark:
        return rollup(spark, source, settings, stream)
