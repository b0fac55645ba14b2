"""What the sequences say that producers number their records with: gaps, duplicates, inversions."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.audit.findings import found_in
from spark_integration.audit.places import Place

TOPIC_SCOPE, PARTITION_SCOPE = "topic", "partition"
SCOPES = {TOPIC_SCOPE: ("topic", "producer"), PARTITION_SCOPE: ("topic", "partition", "producer")}


def sequence_findings(
    place: Place, compacted_topics: Collection[str] = (), *, scope: str = TOPIC_SCOPE, first_sequence: int | None = None
) -> DataFrame:
    """Judge a place's sequences (`findings.SCHEMA`); *scope*: whether a producer counts by topic or by partition.

    *first_sequence* is what each producer begins with; without it nothing is missing before the first that is there.
    """
    sequence, before, visible = sql.col("sequence"), sql.col("before"), sql.col("visible")
    missing, is_first = sequence - before > 1, ~before.eqNullSafe(sequence)
    may_be_compacted = _may_be_compacted(compacted_topics)
    gap = {"first": before + 1, "last": sequence - 1, "count": sequence - before - 1}
    one = {"first": sequence, "last": sequence, "count": sql.lit(1)}
    at, again = _position("partition", "at"), _position("place_before.in_partition", "place_before.at")
    return found_in(
        _in_order(place, SCOPES[scope], first_sequence),
        {
            "gap": (missing & ~may_be_compacted, gap),
            "compacted-sequence": (missing & may_be_compacted, gap),
            "aborted-sequence": (~visible & is_first, one),
            "duplicate": (visible & ~is_first, {**one, "note": sql.concat(at, sql.lit(" as "), again)}),
            "inversion": (
                visible & is_first & (sequence < sql.col("behind")),
                {**one, "note": sql.concat(at, sql.lit(" behind "), sql.col("behind"))},
            ),
        },
        producer=sql.col("producer"),
    )


def _in_order(place: Place, keys: Collection[str], first_sequence: int | None) -> DataFrame:
    """Add to each record the sequence `before` it and where that is, and the highest that came earlier (`behind`).

    Of records with the same sequence those that are visible come first, and of them the oldest.
    """
    numbered = place.records.where("producer is not null and sequence is not null")
    by_sequence = Window.partitionBy(*keys).orderBy("sequence", sql.desc("visible"), "broker_ms", "partition", "at")
    by_offset = Window.partitionBy("topic", "partition", "producer").orderBy("at")
    earlier = by_offset.rowsBetween(Window.unboundedPreceding, -1)
    before = sql.lag("sequence").over(by_sequence)
    if first_sequence is not None:
        before = sql.coalesce(before, sql.lit(first_sequence - 1))
    where = sql.struct(sql.col("partition").alias("in_partition"), "at", "rank")
    visible_sequence = sql.when(sql.col("visible"), sql.col("sequence"))
    return numbered.withColumn("behind", sql.max(visible_sequence).over(earlier)).withColumns(
        {"before": before, "place_before": sql.lag(where).over(by_sequence)}
    )


def _may_be_compacted(compacted_topics: Collection[str]) -> Column:
    """Whether between the neighbours of a gap there are at least as many offsets without a record as it is wide.

    With fewer some of it never came to the log. Neighbours in two partitions, or only one, do not tell.
    """
    there = sql.col("place_before")
    offsets = (sql.col("at") - there["at"]) - (sql.col("rank") - there["rank"])
    tells = sql.col("partition").eqNullSafe(there["in_partition"]) & (sql.col("at") > there["at"])
    missing = sql.col("sequence") - sql.col("before") - 1
    return sql.col("topic").isin(*compacted_topics) & (~tells | (offsets >= missing))


def _position(partition: str, offset: str) -> Column:
    return sql.concat_ws(":", partition, offset)
