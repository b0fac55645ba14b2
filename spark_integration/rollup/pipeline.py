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
from spark_integration.rollup.batches import RollupBatchWriter
from spark_integration.rollup.events import FIRST_MS, LAST_MS, roll_up_events
from spark_integration.rollup.ledger import RollupAccount, RollupLedger
from spark_integration.rollup.settings import RollupSettings
from spark_integration.rollup.tables import TABLES
from spark_integration.rollup.topic import check_topics, create_topics
from spark_integration.state.files import HadoopFiles
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.source import read_stream

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class RollupSummary(Summary):
    """What a run did.

    *late_rows* had no open window; of *partly_late_rows* some windows were over (with `slide` alone); *dead_rows*
    cannot be parsed. *watermark*: windows that end later are still open. *retained_from*: windows that end there or
    before were removed.
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


def rollup(
    spark: SparkSession, source: Mapping[str, str], settings: RollupSettings, stream: StreamOptions
) -> RollupSummary:
    """Roll up the records of *source* (options of Spark's Kafka source), until the trigger of *stream* is satisfied.

    Exactly once in the table and, by its keys, in the topic, even if runs are killed and restarted. Raises
    PipelineError.
    """
    settings.check()
    _check_folders(settings, stream)
    ledger = RollupLedger(spark, stream.checkpoint_location)
    with Cluster(spark, source) as cluster:
        folder = HadoopFiles(spark, settings.path)
        check_topics(cluster, settings, source, ledger.has_finished_batch)
        ledger.check(settings, folder)
        results = roll_up_events(read_stream(spark, source), settings)
        create_topics(cluster, settings)
        # The last step that can fail comes first, since claimed folders belong to these options for good.
        ledger.claim(settings, folder)
        before = ledger.latest()
        table = TABLES[settings.format](spark, settings)
        batches = RollupBatchWriter(spark, source, settings, table, stream.checkpoint_location)
        writer = results.writeStream.foreachBatch(batches).outputMode(settings.mode)
        try:
            tally = run_query(spark, writer, stream, name="rollup", cluster=cluster)
        except Exception:
            # Spark reports a failure within a batch by its whole traceback.
            if batches.failure is not None:
                raise batches.failure from None
            raise
    return _summarize_rollup(settings, before, ledger.latest(), tally.batches)


def _check_folders(rollup: RollupSettings, stream: StreamOptions) -> None:
    if rollup.path.rstrip("/") == stream.checkpoint_location.rstrip("/"):
        raise PipelineError("--path and --checkpointLocation are the same folder: give each its own")


def _summarize_rollup(
    rollup: RollupSettings, before: RollupAccount, after: RollupAccount, batches: int
) -> RollupSummary:
    counted = ("rows", "late_rows", "partly_late_rows", "dead_rows", "windows_written", "tombstones")
    done: dict[str, Any] = {name: getattr(after, name) - getattr(before, name) for name in counted}
    if not rollup.windows.overlaps:
        done["partly_late_rows"] = None
    watermark_ms = after.watermark_ms or None
    return RollupSummary(
        **done, batches=batches, watermark=_format_time(watermark_ms), retained_from=_format_time(after.horizon_ms)
    )


def _format_time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    within = max(FIRST_MS, min(milliseconds, LAST_MS))
    return (EPOCH + timedelta(milliseconds=within)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
