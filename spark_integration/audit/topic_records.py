"""The records of topics: those that a consumer receives, and those of aborted transactions."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.audit.places import TOPIC, AuditedPlace, audit_columns, interval_edges, make_place
from spark_integration.audit.ranges import COMMITTED, ISOLATION, Ranges, source_of_ranges
from spark_integration.audit.settings import AuditFields
from spark_integration.topics.offsets import TopicPartition
from spark_integration.topics.source import read_batch


def read_topic_place(
    spark: SparkSession, source: Mapping[str, str], ranges: Ranges, fields: AuditFields, *, with_contents: bool = False
) -> AuditedPlace:
    """Read the ranges once; partitions with holes are read again for the records of aborted transactions."""

    def read(parts: Ranges, **changed: str) -> DataFrame:
        return audit_columns(
            read_batch(spark, source_of_ranges(source, parts, **changed)), fields, with_contents=with_contents
        )

    edges = interval_edges({partition: [read_range] for partition, read_range in ranges.items()})
    seen = make_place(spark, TOPIC, read(ranges).withColumn("visible", sql.lit(True)), edges)
    with_holes = _ranges_with_holes(seen, ranges)
    if source.get(ISOLATION) != COMMITTED or not with_holes:
        return seen
    everything = read(with_holes, **{ISOLATION: "read_uncommitted"})
    hidden = everything.join(seen.records, ["topic", "partition", "at"], "left_anti")
    known = seen.records.select("visible", *everything.columns)
    both = make_place(spark, TOPIC, known.unionByName(hidden.withColumn("visible", sql.lit(False))), edges)
    both.rows.count()  # before Spark drops the frame that it is made of
    seen.release()
    return both


def _ranges_with_holes(place: AuditedPlace, ranges: Ranges) -> Ranges:
    partitions = {
        TopicPartition(row.topic, row.partition)
        for row in place.holes.select("topic", "partition").distinct().collect()
    }
    return {partition: ranges[partition] for partition in ranges if partition in partitions}
