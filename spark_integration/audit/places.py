"""The records of a topic or of an archive as an audit sees them: in order, each with the offset before it."""

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
# The order of rows at the same offset: an edge comes before the record.
END, START, COMMIT, RECORD = range(4)
# The value of `archived_ms` if the time is lost.
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
    """Partitions whose records a place may lack: those in *before* lost their first records, those in *after* continue."""

    before: Collection[TopicPartition] = ()
    after: Collection[TopicPartition] = ()


UNCUT = PlaceCuts()


@dataclass(frozen=True)
class AuditedPlace:
    """A place that is judged; Spark keeps `rows` until `release`.

    A row is a record or an edge. `previous` is the offset before it in this place, `rank` the number of records up to
    it. `visible` is false for a record that only readers of uncommitted records see.
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
        """The records that a consumer receives."""
        return self.records.where("visible")

    @property
    def follows_hole(self) -> Column:
        """Whether the offset before a row has no record, though it belongs to the place."""
        return sql.col("kind").isin(RECORD, END) & (sql.col("at") - sql.col("previous") > 1)

    @property
    def holes(self) -> DataFrame:
        """Offsets without a record: `topic`, `partition`, `first` and `last`."""
        first, last = (sql.col("previous") + 1).alias("first"), (sql.col("at") - 1).alias("last")
        return self.rows.where(self.follows_hole).select("topic", "partition", first, last)

    def release(self) -> None:
        """Let Spark drop the rows."""
        self.rows.unpersist()


def audit_columns(frame: DataFrame, fields: AuditFields, *, with_contents: bool) -> DataFrame:
    """Select the columns that an audit needs of each record; *with_contents* adds a hash of everything that it holds."""
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
    """Mark where each interval of offsets begins and ends: a hole beside it belongs to the place."""
    edges: list[PlaceEdge] = []
    for (topic, partition), partition_intervals in intervals.items():
        for start, end in partition_intervals:
            edges += [PlaceEdge(topic, partition, start, START, start - 1), PlaceEdge(topic, partition, end, END)]
    return edges


def make_place(
    spark: SparkSession, name: str, records: DataFrame, edges: list[PlaceEdge], cuts: PlaceCuts = UNCUT
) -> AuditedPlace:
    """Order *records* (`audit_columns`, with `visible`) and *edges*, and let Spark keep them."""
    with_kind = records.withColumn("kind", sql.lit(RECORD)).withColumn("reach", sql.col("at"))
    rows = with_kind.unionByName(spark.createDataFrame(edges, EDGES), allowMissingColumns=True)
    order = Window.partitionBy("topic", "partition").orderBy("at", "kind")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    until = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ordered = rows.withColumns(
        {
            "previous": _find_latest("reach").over(before),
            "rank": sql.count(sql.when(sql.col("kind") == RECORD, 1)).over(until),
            "archived_ms": _find_latest("archived_ms").over(until),
            "unit": _find_latest("unit").over(until),
        }
    )
    # Spark 3.5 has no nullif for columns that are not resolved yet.
    archived = sql.when(sql.col("archived_ms") != UNKNOWN, sql.col("archived_ms"))
    return AuditedPlace(name, ordered.withColumn("archived_ms", archived).persist(), cuts)


def _find_latest(column: str) -> Column:
    return sql.last(column, ignorenulls=True)
