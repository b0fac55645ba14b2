"""The records of topics: those a consumer gets, and those of aborted transactions where there are any."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.audit.places import TOPIC, Place, edges_of, noted, placed
from spark_integration.audit.ranges import COMMITTED, ISOLATION, Ranges, ranged
from spark_integration.audit.settings import AuditFields
from spark_integration.topics.offsets import TopicPartition
from spark_integration.topics.source import read_batch


def topic_place(
    spark: SparkSession, source: Mapping[str, str], ranges: Ranges, fields: AuditFields, *, with_contents: bool = False
) -> Place:
    """Read the ranges once; partitions that have holes are read again for the records of aborted transactions."""

    def read(parts: Ranges, **changed: str) -> DataFrame:
        return noted(read_batch(spark, ranged(source, parts, **changed)), fields, with_contents=with_contents)

    edges = edges_of({one: [found] for one, found in ranges.items()})
    seen = placed(spark, TOPIC, read(ranges).withColumn("visible", sql.lit(True)), edges)
    with_holes = _with_holes(seen, ranges)
    if source.get(ISOLATION) != COMMITTED or not with_holes:
        return seen
    everything = read(with_holes, **{ISOLATION: "read_uncommitted"})
    hidden = everything.join(seen.records, ["topic", "partition", "at"], "left_anti")
    known = seen.records.select("visible", *everything.columns)
    both = placed(spark, TOPIC, known.unionByName(hidden.withColumn("visible", sql.lit(False))), edges)
    both.rows.count()  # before what it is made of is let go
    seen.release()
    return both


def _with_holes(place: Place, ranges: Ranges) -> Ranges:
    found = {
        TopicPartition(row.topic, row.partition)
        for row in place.holes.select("topic", "partition").distinct().collect()
    }
    return {one: ranges[one] for one in ranges if one in found}
