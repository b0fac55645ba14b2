"""An archive compared with its topics, record by record."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from spark_integration.audit.archive_records import AuditedArchive
from spark_integration.audit.places import AuditedPlace
from spark_integration.audit.ranges import EVERYTHING, Ranges

PLACE = ("topic", "partition", "at")


class Comparison(NamedTuple):
    """Frames of runs of records, from `first` to `last` of a `topic` and `partition`, `count` of them.

    `missing`: visible in the topic, and not in the archive though it has read that far. `pending`: the same, but the
    archive has not read that far. `extra`: in the archive alone, though the topic still reaches back that far.
    `cleaned`: the same in a compacted topic, which may have dropped them since. `differing`: in both, with other
    contents.
    """

    missing: DataFrame
    pending: DataFrame
    extra: DataFrame
    cleaned: DataFrame
    differing: DataFrame


def compare_records(
    spark: SparkSession,
    topic: AuditedPlace,
    archive: AuditedArchive,
    ranges: Ranges,
    compacted_topics: Collection[str],
    *,
    to_the_end: bool,
) -> Comparison:
    """Compare topic and archive between the offsets of *ranges*, which were read of the topics (*to_the_end* of them).

    A partition that the topic does not have counts as one of which `EVERYTHING` was read.
    """
    here = topic.visible.select(*PLACE, sql.col("content").alias("here"))
    in_archive = archive.place.records.select(*PLACE, sql.col("content").alias("there")).distinct()
    both = here.join(in_archive, list(PLACE), "full_outer").join(
        sql.broadcast(_reach_of_archive(spark, archive, ranges)), list(PLACE[:2])
    )
    # Offsets that were not read of the topic cannot be compared; after its very end there are none to read.
    in_archive_alone = both.where(f"here is null and at >= start and (at < end or {str(to_the_end).lower()})")
    is_compacted = sql.col("topic").isin(*compacted_topics) & (sql.col("end") < EVERYTHING.end)
    covered = "at >= covered_from and at < covered_until"
    in_topic_alone = both.where("there is null")
    return Comparison(
        missing=join_runs(in_topic_alone.where(covered)),
        pending=join_runs(in_topic_alone.where(f"not coalesce({covered}, false)")),
        extra=join_runs(in_archive_alone.where(~is_compacted)),
        cleaned=join_runs(in_archive_alone.where(is_compacted)),
        differing=join_runs(both.where("here != there")),
    )


def join_runs(frame: DataFrame) -> DataFrame:
    """Join offsets that follow each other."""
    order = Window.partitionBy("topic", "partition").orderBy("at")
    numbered = frame.withColumn("run", sql.col("at") - sql.row_number().over(order))
    first, last = sql.min("at").alias("first"), sql.max("at").alias("last")
    return numbered.groupBy("topic", "partition", "run").agg(first, last, sql.count("*").alias("count")).drop("run")


def _reach_of_archive(spark: SparkSession, archive: AuditedArchive, ranges: Ranges) -> DataFrame:
    """Return the range that was read of each partition, and the range that the archive covers; null if it covers none."""
    schema = "topic string, partition int, start bigint, end bigint, covered_from bigint, covered_until bigint"
    rows = []
    for partition, read_range in ranges.items():
        intervals = archive.manifest.covered.get(partition)
        covered = (intervals[0][0], intervals[-1][1]) if intervals else (None, None)
        rows.append((*partition, *read_range, *covered))
    return spark.createDataFrame(rows, schema)
