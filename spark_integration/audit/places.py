"""The records of a topic or of an archive as an audit sees them: in order, each with what lies before it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sql

from spark_integration.audit.fields import field_columns
from spark_integration.audit.settings import AuditFields
from spark_integration.topics.offsets import TopicPartition

TOPIC, ARCHIVE = "topic", "archive"
CONTENTS = ("key", "value", "timestamp", "timestampType", "headers")
# How rows at the same offset follow each other: an edge comes before the record.
END, START, COMMIT, RECORD = range(4)
# Of `archived_ms`, where it is not known any more.
UNKNOWN = -1
EDGES = "topic string, partition int, at bigint, kind int, reach bigint, archived_ms bigint, unit int"


class PlaceEdge(NamedTuple):
    """What is known of a partition at an offset besides its records; `reach` is the offset that comes before `at`."""

    topic: str
    partition: int
    at: int
    kind: int
    reach: int | None = None
    archived_ms: int | None = None
    unit: int | None = None


class PlaceCuts(NamedTuple):
    """Partitions of which a place may not have all: records went before what it has, or came behind it."""

    before: Collection[TopicPartition] = ()
    behind: Collection[TopicPartition] = ()


UNCUT = PlaceCuts()


@dataclass(frozen=True)
class AuditedPlace:
    """A place that is judged; `rows` is kept by Spark until `release`.

    A row is a record or an edge. `previous` is the offset that the place had before it, `rank` how many records there
    were up to it; `visible` is false for a record that only a reader of the uncommitted sees.
    """

    name: str
    rows: DataFrame
    cuts: PlaceCuts = UNCUT

    @property
    def records(self) -> DataFrame:
        """All records, those of aborted transactions among them."""
        return self.rows.where(sql.col("kind") == RECORD)

    @property
    def visible(self) -> DataFrame:
        """The records that a consumer gets."""
        return self.records.where("visible")

    @property
    def is_behind_hole(self) -> Column:
        """Whether the offset before a row has no record, though it should be one of the place's."""
        return sql.col("kind").isin(RECORD, END) & (sql.col("at") - sql.col("previous") > 1)

    @property
    def holes(self) -> DataFrame:
        """Offsets without a record: `topic`, `partition`, `first` and `last`."""
        first, last = (sql.col("previous") + 1).alias("first"), (sql.col("at") - 1).alias("last")
        return self.rows.where(self.is_behind_hole).select("topic", "partition", first, last)

    def release(self) -> None:
        """Let Spark forget the rows."""
        self.rows.unpersist()


def audit_columns(frame: DataFrame, fields: AuditFields, *, with_contents: bool) -> DataFrame:
    """Take of each record what the audit needs; *with_contents*: a hash of all that it holds as well."""
    content = sql.xxhash64(*CONTENTS) if with_contents else sql.lit(None).cast("bigint")
    columns = {
        "at": sql.col("offset"),
        "timestamp_type": sql.col("timestampType"),
        "broker_ms": sql.unix_millis("timestamp"),
        "content": content,
        **field_columns(fields),
    }
    named = [column.alias(name) for name, column in columns.items()]
    return frame.select("topic", "partition", *named)


def interval_edges(intervals: Mapping[TopicPartition, Iterable[tuple[int, int]]]) -> list[PlaceEdge]:
    """Mark where each interval of offsets begins and ends: a hole beside it is one of the place's own."""
    found: list[PlaceEdge] = []
    for (topic, partition), several in intervals.items():
        for start, end in several:
            found += [PlaceEdge(topic, partition, start, START, start - 1), PlaceEdge(topic, partition, end, END)]
    return found


def make_place(
    spark: SparkSession, name: str, records: DataFrame, edges: list[PlaceEdge], cuts: PlaceCuts = UNCUT
) -> AuditedPlace:
    """Put *records* (`audit_columns`, with `visible`) and *edges* in order, and keep them."""
    with_kind = records.withColumn("kind", sql.lit(RECORD)).withColumn("reach", sql.col("at"))
    rows = with_kind.unionByName(spark.createDataFrame(edges, EDGES), allowMissingColumns=True)
    order = Window.partitionBy("topic", "partition").orderBy("at", "kind")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    until = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ordered = rows.withColumns(
        {
            "previous": _latest("reach").over(before),
            "rank": sql.count(sql.when(sql.col("kind") == RECORD, 1)).over(until),
            "archived_ms": _latest("archived_ms").over(until),
            "unit": _latest("unit").over(until),
        }
    )
    # Spark 3.5 has no nullif of what is not resolved yet.
    archived = sql.when(sql.col("archived_ms") != UNKNOWN, sql.col("archived_ms"))
    return AuditedPlace(name, ordered.withColumn("archived_ms", archived).persist(), cuts)


def _latest(column: str) -> Column:
    return sql.last(column, ignorenulls=True)
