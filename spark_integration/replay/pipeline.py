"""The pipeline `replay`: an archive back into topics, in the order of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive.reading import read_archive
from spark_integration.errors import PipelineError
from spark_integration.queries.bars import show_job_bar
from spark_integration.queries.query import catch_stop_signals
from spark_integration.queries.summary import Summary
from spark_integration.replay.pace import write_paced
from spark_integration.replay.selection import select_records
from spark_integration.replay.settings import BY_KEY, KEEP, ReplaySelection
from spark_integration.state.archives import read_manifest
from spark_integration.topics.cluster import Cluster, OffsetSpec, TopicDescription
from spark_integration.topics.creation import CreatedTopics, ensure_topics
from spark_integration.topics.names import TargetNames
from spark_integration.topics.offsets import Offsets, TopicPartition
from spark_integration.topics.origin import add_origin
from spark_integration.topics.sink import PARTITION, renamed_topic, sort_partitions, write_batch
from spark_integration.topics.written import find_first_missing, find_written_records, select_unwritten


@dataclass(frozen=True)
class ReplaySummary(Summary):
    """What a replay did, or would do; the target may have held some of the selected records already."""

    topics: int
    partitions: int
    records_selected: int
    records_to_write: int
    records_written: int
    topics_created: int


def replay(
    spark: SparkSession,
    path: str,
    target: Mapping[str, str],
    *,
    format: str | None = None,
    selection: ReplaySelection | None = None,
    names: TargetNames | None = None,
    partitioner: str = KEEP,
    rate: int | None = None,
    again: bool = False,
    dry_run: bool = False,
) -> ReplaySummary:
    """Write the records that *selection* means of the archive at *path* into topics of *target* (options ``kafka.*``).

    Records keep their partition (*partitioner* ``keep``) or get that of their key's hash (``key``). Records that the
    target has already, as its headers of origin tell, are skipped unless *again*. The whole archive is read before the
    first record is written, so a damaged archive writes nothing. *rate*: records a second at most. Raises
    PipelineError.
    """
    selection, names = selection or ReplaySelection(), names or TargetNames()
    archived = _count_partitions(spark, path)
    selection.check(archived, path)
    names.check_mapped(archived, f"the archive in {path} has")
    rows = select_records(read_archive(spark, path, format), selection)
    with Cluster(spark, target) as cluster, show_job_bar(spark, "replay"):
        selected = _count_by_partition(rows)
        if not selected:
            raise PipelineError(f"the archive in {path} has no record in that range: give another one")
        topics = names.check(sorted({partition.topic for partition in selected}))
        existing = cluster.topics(topics.values())
        if partitioner == KEEP:
            _check_partitions(
                cluster, existing, {topics[partition.topic]: partition.partition for partition in sorted(selected)}
            )
        begin, end = _read_filled_ranges(cluster, existing)
        left = selected
        if begin and not again:
            rows = select_unwritten(rows, find_first_missing(rows, find_written_records(spark, target, begin, end)))
            left = _count_by_partition(rows)
        done, made = 0, CreatedTopics()
        if left and not dry_run:
            missing = {name: archived[topic] for topic, name in topics.items() if name not in existing}
            ensure_topics(cluster, missing, made)
            done = _write_records(rows, left, names, partitioner, rate, target)
    counts = (sum(selected.values()), sum(left.values()), done)
    return ReplaySummary(len(topics), len(selected), *counts, made.topics)


def _count_partitions(spark: SparkSession, path: str) -> dict[str, int]:
    """Return the number of partitions of each topic of the archive, as far as it knows them."""
    counts: dict[str, int] = {}
    for topic, partition in read_manifest(spark, path).covered:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


def _count_by_partition(rows: DataFrame) -> dict[TopicPartition, int]:
    counted = rows.groupBy(*PARTITION).count().collect()
    return {TopicPartition(row.topic, row.partition): row["count"] for row in counted}


def _check_partitions(cluster: Cluster, existing: Mapping[str, TopicDescription], last: Mapping[str, int]) -> None:
    for name, topic in existing.items():
        if topic.partitions <= last[name]:
            raise PipelineError(
                f"topic {name} on {cluster.bootstrap} has {topic.partitions} partitions, and the archive has partition "
                f"{last[name]}: add partitions to it, or give --partitioner {BY_KEY}"
            )


def _read_filled_ranges(cluster: Cluster, topics: Iterable[str]) -> tuple[Offsets, Offsets]:
    """Return the first and the next offset of each partition that holds records."""
    partitions = cluster.partitions(topics)
    begin, end = (cluster.offsets(partitions, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
    held = [partition for partition in partitions if begin[partition] < end[partition]]
    return {partition: begin[partition] for partition in held}, {partition: end[partition] for partition in held}


def _write_records(
    rows: DataFrame,
    left: Mapping[TopicPartition, int],
    names: TargetNames,
    partitioner: str,
    rate: int | None,
    target: Mapping[str, str],
) -> int:
    def write(frame: DataFrame) -> None:
        named = add_origin(frame).withColumn("topic", renamed_topic(names))
        write_batch(named if partitioner == KEEP else named.drop("partition"), target)

    count = sum(left.values())
    if rate is None:
        write(sort_partitions(rows, len(left)))
        return count
    with catch_stop_signals() as stopped:
        done = write_paced(rows, count, rate, write, stopped)
    if done < count:
        raise PipelineError(f"ended after {done} of {count} records: run it again to continue")
    return done
