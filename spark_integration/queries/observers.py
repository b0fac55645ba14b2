"""Observers of micro-batches: a file of JSON lines, a file in Prometheus' format, a consumer group's offsets."""

from __future__ import annotations

import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, write_to_textfile

from spark_integration.errors import PipelineError
from spark_integration.queries.listener import BatchProgress
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.offsets import Offsets


class JsonLines:
    """Appends a line of JSON for each batch."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, progress: BatchProgress) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(progress.as_json() + "\n")


class PrometheusText:
    """Keeps a file in Prometheus' text format, replaced as a whole, as node_exporter's textfile collector reads it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._registry = CollectorRegistry()
        query, partition = ["query"], ["query", "topic", "partition"]
        self._rows = Counter("kafkacompat_spark_input_rows", "Rows read", query, registry=self._registry)
        self._batches = Counter("kafkacompat_spark_batches", "Micro-batches done", query, registry=self._registry)
        self._seconds = Gauge(
            "kafkacompat_spark_batch_duration_seconds",
            "Parts of the last batch",
            [*query, "part"],
            registry=self._registry,
        )
        self._updated = Gauge("kafkacompat_spark_updated_time_seconds", "Last batch", query, registry=self._registry)
        self._offset = Gauge("kafkacompat_spark_offset", "Next offset to read", partition, registry=self._registry)
        self._lag = Gauge("kafkacompat_spark_lag", "Offsets not read yet", partition, registry=self._registry)

    def __call__(self, progress: BatchProgress) -> None:
        query = progress.query
        self._rows.labels(query).inc(progress.input_rows)
        self._batches.labels(query).inc()
        self._updated.labels(query).set(time.time())
        for part, duration_ms in progress.durations_ms.items():
            self._seconds.labels(query, part).set(duration_ms / 1000)
        for partition, offset in progress.end_offsets.items():
            latest = progress.latest_offsets.get(partition, offset)
            self._offset.labels(query, partition.topic, str(partition.partition)).set(offset)
            self._lag.labels(query, partition.topic, str(partition.partition)).set(max(0, latest - offset))
        write_to_textfile(str(self.path), self._registry)


class Committer:
    """Commits the end of each batch as a consumer group's offsets, so that tools that show lag see the query.

    Spark itself neither commits offsets nor reads these: it continues from the checkpoint alone. The group must have no
    members.
    """

    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._committed: Offsets = {}

    def check(self) -> None:
        """Raise PipelineError if the group has members: the broker then accepts commits from them alone."""
        if members := self._cluster.members(self._group):
            raise PipelineError(
                f"the consumer group {self._group} has members of its own ({members}), "
                "and only they may commit its offsets: "
                "end them, or give another --commit-group"
            )

    def __call__(self, progress: BatchProgress) -> None:
        self.commit(progress.end_offsets)

    def commit(self, offsets: Offsets) -> None:
        """Commit those of *offsets* that have changed."""
        moved = {partition: offset for partition, offset in offsets.items() if self._committed.get(partition) != offset}
        if moved:
            self._commit(moved)
            self._committed.update(moved)

    def _commit(self, offsets: Offsets) -> None:
        try:
            self._cluster.commit(self._group, offsets)
        except PipelineError:
            # A checkpoint still names partitions of topics that were deleted.
            topics = self._cluster.topics({partition.topic for partition in offsets})
            existing = {
                partition: offset
                for partition, offset in offsets.items()
                if partition.topic in topics and partition.partition < topics[partition.topic].partitions
            }
            if len(existing) == len(offsets):
                raise
            if existing:
                self._cluster.commit(self._group, existing)


class ReadTally:
    """Counts the rows and batches that a run has read."""

    def __init__(self) -> None:
        self.rows = 0
        self.batches = 0

    def __call__(self, progress: BatchProgress) -> None:
        self.rows += progress.input_rows
        self.batches += 1
