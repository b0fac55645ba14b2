"""The pipeline `rollup`: watermarked windows over JSON events, into a compacted topic and a table (docs/SPARK.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import SparkSession

from spark_integration.errors import PipelineError
from spark_integration.queries.query import run_query
from spark_integration.queries.settings import StreamOptions
from spark_integration.queries.summary import Summary
from spark_integration.rollup.batches import Batches
from spark_integration.rollup.events import FIRST_MS, LAST_MS, rolled_up
from spark_integration.rollup.ledger import Account, Ledger
from spark_integration.rollup.settings import Rollup
from spark_integration.rollup.tables import TABLES
from spark_integration.rollup.topic import check_topics, make_topics
from spark_integration.state.files import Files
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.source import read_stream

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
