"""The pipeline `rollup`: watermarked windows over JSON events, into a compacted topic and a table (docs/SPARK.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import click
from pyspark.sql import SparkSession

from spark_integration.cluster import Cluster
from spark_integration.command import pipeline, spark_session
from spark_integration.console import Summary
from spark_integration.errors import PipelineError
from spark_integration.files import Files
from spark_integration.options import SessionOptions, session_options, source_options, stream_options
from spark_integration.query import StreamOptions, run_query
from spark_integration.rollup.batches import Batches
from spark_integration.rollup.events import FIRST_MS, LAST_MS, rolled_up
from spark_integration.rollup.ledger import Account, Ledger
from spark_integration.rollup.measures import FUNCTIONS
from spark_integration.rollup.settings import FORMATS, MODES, Rollup
from spark_integration.rollup.table import TABLES
from spark_integration.rollup.topic import check_topics, make_topics
from spark_integration.source import read_stream

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class RollupSummary(Summary):
    """What a run did.

    *late_rows* had no window that was not over; of *partly_late_rows* some windows were (with `slide` alone);
    *dead_rows* do not parse. *watermark*: windows that end later are open still. *retained_from*: windows that end
    there or before are taken out.
    """

    rows: int
    late_rows: int
    partly_late_rows: int | None
    dead_rows: int
    windows_written: int
    tombstones: int
    batches: int
    watermark: str | None
    retained_from: str | None


def rollup(spark: SparkSession, source: Mapping[str, str], settings: Rollup, stream: StreamOptions) -> RollupSummary:
    """Roll up what *source* (options of Spark's Kafka source) has, until the trigger of *stream* is satisfied.

    Exactly once in the table and, by its keys, in the topic, over kills and new starts. Raises PipelineError.
    """
    settings.check()
    _check(settings, stream)
    ledger = Ledger(spark, stream.checkpoint_location)
    with Cluster(spark, source) as cluster:
        folder = Files(spark, settings.path)
        check_topics(cluster, settings, source, ledger.begun)
        ledger.check(settings, folder)
        results = rolled_up(read_stream(spark, source), settings)
        make_topics(cluster, settings)
        # With the last thing that can be refused behind it: what is claimed belongs to these options for ever.
        ledger.claim(settings, folder)
        before = ledger.latest()
        table = TABLES[settings.format](spark, settings)
        batches = Batches(spark, source, settings, table, stream.checkpoint_location)
        writer = results.writeStream.foreachBatch(batches).outputMode(settings.mode)
        try:
            tally = run_query(spark, writer, stream, name="rollup", cluster=cluster)
        except Exception:
            # What Spark tells of a failure in the batch is the whole traceback.
            if batches.failure is not None:
                raise batches.failure from None
            raise
    return _summary(settings, before, ledger.latest(), tally.batches)


def _check(rollup: Rollup, stream: StreamOptions) -> None:
    if rollup.path.rstrip("/") == stream.checkpoint_location.rstrip("/"):
        raise PipelineError("--path and --checkpointLocation are the same folder: give each its own")


def _summary(rollup: Rollup, before: Account, after: Account, batches: int) -> RollupSummary:
    counted = ("rows", "late_rows", "partly_late_rows", "dead_rows", "windows_written", "tombstones")
    done: dict[str, Any] = {name: getattr(after, name) - getattr(before, name) for name in counted}
    if not rollup.windows.overlap:
        done["partly_late_rows"] = None
    watermark_ms = after.watermark_ms or None
    return RollupSummary(**done, batches=batches, watermark=_iso(watermark_ms), retained_from=_iso(after.horizon_ms))


def _iso(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    within = max(FIRST_MS, min(milliseconds, LAST_MS))
    return (EPOCH + timedelta(milliseconds=within)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pipeline("rollup")
@session_options
@source_options()
@stream_options
@click.option("--topic", required=True, help="Where results go by key; made, compacted, when it is missing.")
@click.option("--path", required=True, help="Where the table of results lies.")
@click.option("--format", type=click.Choice(FORMATS), default="parquet", help="The table's; --mode update needs delta.")
@click.option(
    "--time-field",
    help="An event's time, by its path in the value: ISO 8601, or milliseconds since 1970. [default: the record's timestamp]",
)
@click.option("--window", required=True, help="Length of the windows, like '1 minute'.")
@click.option("--slide", help="A window begins that often. [default: each begins where one ends]")
@click.option(
    "--watermark", required=True, help="Events may come that much later than the latest one, like '5 minutes'."
)
@click.option(
    "--dimensions", default="", help="Paths in the value, separated by commas: a result for each combination."
)
@click.option(
    "--measures", default="count", help=f"Of {', '.join(FUNCTIONS)}; like 'sum(amount),count,max(user.age) as oldest'."
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="append",
    help="append: a window once it is over; update: with each change.",
)
@click.option("--retention", help="Windows older than that get tombstones, and leave the table. [default: none do]")
@click.option("--partitions", type=int, default=1, help="Of topics that are made.")
@click.option("--dead-topic", help="Where records go that do not parse; made when it is missing.")
@click.option("--any-cleanup-policy", is_flag=True, help="Take a topic that is not compacted.")
def command(session: SessionOptions, source: dict[str, str], stream: StreamOptions, **options: Any) -> RollupSummary:
    """Count JSON events by windows of time, into a compacted topic and a table."""
    settings = Rollup(**options)
    settings.check()
    packages = ("delta",) if settings.format == "delta" else ()
    with spark_session("rollup", session, packages) as spark:
        return rollup(spark, source, settings, stream)
