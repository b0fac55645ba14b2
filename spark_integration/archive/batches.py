"""Micro-batches of an archive: each adds the records that the archive lacks, as one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive.layout import archive_columns
from spark_integration.archive.ledger import ArchiveLedger
from spark_integration.errors import PipelineError
from spark_integration.state.checkpoint import read_planned_batch
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import UNKNOWN_IDS, OffsetRange
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.intervals import records_outside
from spark_integration.topics.offsets import Interval, Offsets, TopicPartition, intersect_intervals, subtract_intervals


class ArchiveBatchWriter:
    """Writes micro-batches (a foreachBatch function).

    Only offsets decide what is written: a batch that runs again, with the same checkpoint or a new one, adds the
    offsets that the archive lacks. *tasks* is the number of tasks that write a batch; 0 means as many as Spark runs at
    a time, which is read for each batch because executors of a cluster join after the query has started. *tidy* is
    called after each commit.
    """

    def __init__(
        self,
        spark: SparkSession,
        cluster: Cluster,
        ledger: ArchiveLedger,
        checkpoint: str,
        tasks: int,
        tidy: Callable[[], None],
    ) -> None:
        self._spark, self._cluster, self._ledger, self._checkpoint = spark, cluster, ledger, checkpoint
        self._tasks, self._tidy = tasks, tidy
        self.failure: PipelineError | None = None
        self.records = 0
        self.already_archived = 0
        self.files = 0
        self.topics: set[str] = set()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write what the archive lacks of the batch; keeps a PipelineError, since Spark reports only its text."""
        try:
            self._add(frame, batch)
        except PipelineError as problem:
            self.failure = problem
            raise

    def _add(self, frame: DataFrame, batch: int) -> None:
        planned = read_planned_batch(self._spark, self._checkpoint, batch)
        asked = offsets_to_read(planned.start, planned.end)
        covered = {
            partition: intersect_intervals(interval, self._ledger.covered.get(partition, []))
            for partition, interval in asked.items()
        }
        missing = {partition: subtract_intervals(interval, covered[partition]) for partition, interval in asked.items()}
        self.already_archived += sum(until - first for intervals in covered.values() for first, until in intervals)
        query = read_query_id(self._spark, self._checkpoint)
        ranges = self._list_ranges({partition: intervals for partition, intervals in missing.items() if intervals})
        if ranges or query not in self._ledger.queries:
            left = records_outside(archive_columns(frame), covered) if ranges else archive_columns(frame).limit(0)
            self._commit(left, query, batch, ranges)

    def _commit(self, left: DataFrame, query: str | None, batch: int, ranges: tuple[OffsetRange, ...]) -> None:
        draft = self._ledger.draft("batch", query, batch, ranges)
        tasks = self._tasks or self._spark.sparkContext.defaultParallelism
        done = self._ledger.commit(left.coalesce(tasks), draft, lambda _: self._check_ids(ranges))
        self.records += sum(added.records for added in done.ranges)
        self.files += len(done.files)
        self.topics |= {added.topic for added in done.ranges if added.records}
        self._tidy()

    def _list_ranges(self, missing: Mapping[TopicPartition, list[Interval]]) -> tuple[OffsetRange, ...]:
        ids = self._list_topic_ids({partition.topic for partition in missing})
        return tuple(
            OffsetRange(*partition, ids[partition.topic], first, until, 0, None, None)
            for partition, intervals in sorted(missing.items())
            for first, until in intervals
        )

    def _list_topic_ids(self, topics: set[str]) -> dict[str, str]:
        if not topics:
            return {}
        existing_ids = {name: topic.topic_id for name, topic in self._cluster.topics(topics).items()}
        # A topic that was deleted after Spark planned the batch has the id that the archive knows, if any.
        ids = {topic: existing_ids.get(topic, self._ledger.topic_ids.get(topic, "")) for topic in topics}
        check_topic_ids(self._ledger.topic_ids, ids)
        return ids

    def _check_ids(self, ranges: tuple[OffsetRange, ...]) -> None:
        """Raise PipelineError if a topic was recreated while it was read."""
        before = {planned.topic: planned.topic_id for planned in ranges}
        check_topic_ids(before, self._list_topic_ids(set(before)))


def offsets_to_read(start: Offsets, end: Offsets) -> dict[TopicPartition, Interval]:
    """Return the interval that a batch reads of each partition; a partition that is new is read from offset 0."""
    intervals = {partition: (max(0, start[partition]), until) for partition, until in end.items()}
    return {partition: interval for partition, interval in intervals.items() if interval[0] < interval[1]}


def check_topic_ids(known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise PipelineError if a topic is not the one that was archived: its offsets began again."""
    for topic, topic_id in now.items():
        if not {known.get(topic, topic_id), topic_id} & UNKNOWN_IDS and known.get(topic, topic_id) != topic_id:
            raise PipelineError(
                f"the topic {topic} was deleted and recreated since it was archived "
                f"(id {known[topic]}, now {topic_id}), "
                "so its offsets mean other records: give another --path"
            )


def read_query_id(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the id of the query that a checkpoint belongs to; None for a checkpoint without a query."""
    files = HadoopFiles(spark, checkpoint)
    return str(json.loads(files.read("metadata"))["id"]) if files.exists("metadata") else None
