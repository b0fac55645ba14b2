"""Micro-batches of a rollup: results into table and topic, old windows out of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.errors import PipelineError
from spark_integration.rollup.events import REASON, count_events, parse_events
from spark_integration.rollup.ledger import RollupAccount, RollupLedger
from spark_integration.rollup.settings import RollupSettings
from spark_integration.rollup.tables import RollupTable, is_window_over
from spark_integration.rollup.topic import (
    client_options,
    dead_letter_records,
    tombstone_records,
    upsert_records,
    write_to_topic,
)
from spark_integration.state.checkpoint import PlannedBatch, read_planned_batch
from spark_integration.topics.frames import persist_frame
from spark_integration.topics.written import read_between


class RollupBatchWriter:
    """Writes each micro-batch (a foreachBatch function).

    Every step writes the same if it is repeated, and the batch's account is written last. So a batch that was cut off
    anywhere is repeated from its beginning, and a batch that has its account is skipped.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: Mapping[str, str],
        rollup: RollupSettings,
        table: RollupTable,
        checkpoint: str,
    ) -> None:
        self._spark, self._source, self._rollup, self._table = spark, source, rollup, table
        self._checkpoint = checkpoint
        self._ledger = RollupLedger(spark, checkpoint)
        self.failure: PipelineError | None = None

    def __call__(self, results: DataFrame, number: int) -> None:
        """Write the batch, unless an earlier run did."""
        try:
            account = self._ledger.read(number)
            if account is None:
                self._write(results, number)
            else:
                # Spark keeps its state by computing the results.
                results.write.format("noop").mode("overwrite").save()
                self._drop(account)
        except PipelineError as problem:
            self.failure = problem
            raise

    def _write(self, results: DataFrame, number: int) -> None:
        before = self._ledger.before(number)
        planned = read_planned_batch(self._spark, self._checkpoint, number)
        horizon_ms = self._horizon_ms(before, planned)
        counted = self._count(before, planned)
        # Both sinks get the results of one computation, so that they are equal to the last digit.
        with persist_frame(results) as rows:
            current = rows if horizon_ms is None else rows.where(~is_window_over(horizon_ms))
            written = current.count()
            if written:
                self._table.put(number, current)
                write_to_topic(upsert_records(current, self._rollup), self._source, self._rollup.topic)
        account = replace(
            counted,
            windows_written=before.windows_written + written,
            tombstones=before.tombstones + self._write_tombstones(before.horizon_ms, horizon_ms),
            watermark_ms=planned.watermark_ms,
            horizon_ms=horizon_ms,
        )
        self._ledger.write(number, account)
        self._drop(account)

    def _horizon_ms(self, before: RollupAccount, planned: PlannedBatch) -> int | None:
        """Return the time up to which windows are too old; it never decreases, since removed windows are gone."""
        if self._rollup.retention_ms is None or planned.watermark_ms == 0:
            return before.horizon_ms
        horizon_ms = planned.watermark_ms - self._rollup.retention_ms
        return horizon_ms if before.horizon_ms is None else max(horizon_ms, before.horizon_ms)

    def _count(self, before: RollupAccount, planned: PlannedBatch) -> RollupAccount:
        """Count the records of the batch by reading them again, and write dead letters."""
        if planned.start == planned.end:
            return before
        records = read_between(self._spark, client_options(self._source), planned.start, planned.end)
        row = count_events(records, self._rollup, planned.late_until_ms).collect()[0]
        if row.dead_rows and self._rollup.dead_topic:
            dead = parse_events(records, self._rollup).where(sql.col(REASON).isNotNull())
            write_to_topic(dead_letter_records(dead), self._source, self._rollup.dead_topic)
        return replace(before, **{name: getattr(before, name) + count for name, count in row.asDict().items()})

    def _write_tombstones(self, done_ms: int | None, horizon_ms: int | None) -> int:
        """Write tombstones for windows between the last horizon and this one; return their number."""
        table = None if horizon_ms is None or horizon_ms == done_ms else self._table.read()
        if horizon_ms is None or table is None:
            return 0
        old = table.where(is_window_over(horizon_ms))
        with persist_frame(old if done_ms is None else old.where(~is_window_over(done_ms))) as rows:
            count: int = rows.count()
            if count:
                write_to_topic(tombstone_records(rows, self._rollup), self._source, self._rollup.topic)
            return count

    def _drop(self, account: RollupAccount) -> None:
        if account.horizon_ms is not None:
            self._table.drop(account.horizon_ms)
