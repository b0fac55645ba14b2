"""An archive back into topics, in the order of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive import read_archive
from spark_integration.cluster import Cluster, Spec, Topic
from spark_integration.command import pipeline, spark_session
from spark_integration.console import Summary, job_bar
from spark_integration.errors import PipelineError
from spark_integration.manifest import read_manifest
from spark_integration.names import Names, names_options
from spark_integration.offsets import Offsets, TopicPartition, offsets_of_json
from spark_integration.options import SessionOptions, cluster_options, session_options
from spark_integration.origin import with_origin
from spark_integration.packages import of_format
from spark_integration.query import stop_signals
from spark_integration.replay.pace import write_paced
from spark_integration.replay.selection import Selection, milliseconds_of
from spark_integration.sink import PARTITION, in_order, write_batch
from spark_integration.topics import Made, make_topics
from spark_integration.written import first_missing, unwritten, written

KEEP, BY_KEY = "keep", "key"


@dataclass(frozen=True)
class ReplaySummary(Summary):
    """What a replay did, or would do; of those selected some may have been there already."""

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
    selection: Selection | None = None,
    names: Names | None = None,
    partitioner: str = KEEP,
    rate: int | None = None,
    again: bool = False,
    dry_run: bool = False,
) -> ReplaySummary:
    """Write what *selection* means of the archive at *path* into topics of *target* (options ``kafka.*``).

    Records keep their partition (*partitioner* ``keep``) or get that of their key's hash (``key``). What the target has
    already, as its records' origin headers tell, is left out unless *again*. All of the archive is read before the first
    record is written, so nothing is written of one that is damaged. *rate*: records a second at most. Raises
    PipelineError.
    """
    selection, names = selection or Selection(), names or Names()
    archived = _partitions(spark, path)
    selection.check(archived, path)
    names.check_mapped(archived, f"the archive in {path} has")
    rows = selection.of(read_archive(spark, path, format))
    with Cluster(spark, target) as cluster, job_bar(spark, "replay"):
        selected = _counts(rows)
        if not selected:
            raise PipelineError(f"the archive in {path} has no record in that range: give another one")
        topics = names.check(sorted({one.topic for one in selected}))
        there = cluster.topics(topics.values())
        if partitioner == KEEP:
            _check_partitions(cluster, there, {topics[one.topic]: one.partition for one in sorted(selected)})
        begin, end = _held(cluster, there)
        left = selected
        if begin and not again:
            rows = unwritten(rows, first_missing(rows, written(spark, target, begin, end)))
            left = _counts(rows)
        done, made = 0, Made()
        if left and not dry_run:
            missing = {name: archived[topic] for topic, name in topics.items() if name not in there}
            make_topics(cluster, missing, made)
            done = _write(rows, left, names, partitioner, rate, target)
    counts = (sum(selected.values()), sum(left.values()), done)
    return ReplaySummary(len(topics), len(selected), *counts, made.topics)


def _partitions(spark: SparkSession, path: str) -> dict[str, int]:
    """Return how many partitions each topic of the archive has, as far as it knows."""
    counts: dict[str, int] = {}
    for topic, partition in read_manifest(spark, path).covered:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


def _counts(rows: DataFrame) -> dict[TopicPartition, int]:
    counted = rows.groupBy(*PARTITION).count().collect()
    return {TopicPartition(row.topic, row.partition): row["count"] for row in counted}


def _check_partitions(cluster: Cluster, there: Mapping[str, Topic], last: Mapping[str, int]) -> None:
    for name, topic in there.items():
        if topic.partitions <= last[name]:
            raise PipelineError(
                f"topic {name} on {cluster.bootstrap} has {topic.partitions} partitions and the archive's goes up to "
                f"{last[name]}: add partitions to it, or give --partitioner {BY_KEY}"
            )


def _held(cluster: Cluster, topics: Iterable[str]) -> tuple[Offsets, Offsets]:
    """Return the first and the next offset of each partition that holds anything."""
    partitions = cluster.partitions(topics)
    begin, end = (cluster.offsets(partitions, spec) for spec in (Spec.EARLIEST, Spec.LATEST))
    held = [one for one in partitions if begin[one] < end[one]]
    return {one: begin[one] for one in held}, {one: end[one] for one in held}


def _write(
    rows: DataFrame,
    left: Mapping[TopicPartition, int],
    names: Names,
    partitioner: str,
    rate: int | None,
    target: Mapping[str, str],
) -> int:
    def write(frame: DataFrame) -> None:
        named = with_origin(frame).withColumn("topic", names.column())
        write_batch(named if partitioner == KEEP else named.drop("partition"), target)

    count = sum(left.values())
    if rate is None:
        write(in_order(rows, len(left)))
        return count
    with stop_signals() as stopped:
        done = write_paced(rows, count, rate, write, stopped)
    if done < count:
        raise PipelineError(f"ended after {done} of {count} records: run it again to go on")
    return done


@pipeline("replay")
@session_options
@cluster_options("target")
@names_options
@click.option("--path", required=True, metavar="DIR", help="The archive.")
@click.option(
    "--format", type=click.Choice(["parquet", "delta", "iceberg"]), help="Of the archive; found out if not given."
)
@click.option("--topics", metavar="A,B", help="Topics of the archive, separated by commas; all if not given.")
@click.option("--startingOffsets", "starting_offsets", help='From these offsets on: {"topic":{"0":23}}.')
@click.option("--endingOffsets", "ending_offsets", help='Up to these offsets, without them: {"topic":{"0":50}}.')
@click.option("--startingTimestamp", "starting_timestamp", metavar="TIME", help="Records of that time or later.")
@click.option("--endingTimestamp", "ending_timestamp", metavar="TIME", help="Records before that time.")
@click.option(
    "--partitioner", type=click.Choice([KEEP, BY_KEY]), default=KEEP, help="The partition as it was, or by key."
)
@click.option("--rate", type=click.IntRange(min=1), help="Records a second at most, in the order of their times.")
@click.option("--again", is_flag=True, help="Write what the target has already, too.")
@click.option("--dry-run", is_flag=True, help="Tell what would be written, and write nothing.")
def command(
    session: SessionOptions,
    target: dict[str, str],
    names: Names,
    path: str,
    format: str | None,
    topics: str | None,
    starting_offsets: str | None,
    ending_offsets: str | None,
    starting_timestamp: str | None,
    ending_timestamp: str | None,
    **how: Any,
) -> ReplaySummary:
    """Write an archive back into topics, each partition in its order.

    Records keep partition, key, value and headers; where they come from, and when, is told in further headers. Topics
    that are missing are made. Run it again to go on: what is there already is not written again, unless it lies behind
    something that is missing. A TIME is in
    milliseconds since 1970, or 2026-11-22T03:45:00 (UTC).
    """
    selection = Selection(
        tuple(name.strip() for name in topics.split(",")) if topics else None,
        offsets_of_json(starting_offsets) if starting_offsets else {},
        offsets_of_json(ending_offsets) if ending_offsets else {},
        milliseconds_of(starting_timestamp) if starting_timestamp else None,
        milliseconds_of(ending_timestamp) if ending_timestamp else None,
    )
    with spark_session("replay", session, of_format(format)) as spark:
        return replay(spark, path, target, format=format, selection=selection, names=names, **how)
