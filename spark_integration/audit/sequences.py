"""Findings in the sequences with which producers number their records: gaps, duplicates, inversions."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.audit.findings import find_by_rules
from spark_integration.audit.places import AuditedPlace, PlaceCuts
from spark_integration.audit.settings import SCOPES, TOPIC_SCOPE

CUTS = "topic string, partition int, before boolean, after boolean"
# The largest distance of two sequences that a bigint can hold.
FARTHEST = 2**63 - 1


def sequence_findings(
    place: AuditedPlace,
    compacted_topics: Collection[str] = (),
    *,
    scope: str = TOPIC_SCOPE,
    first_sequence: int | None = None,
) -> DataFrame:
    """Return the findings in a place's sequences (`findings.SCHEMA`).

    *scope*: whether a producer numbers its records by topic or by partition. *first_sequence* is the number with which
    each producer begins. Without it nothing is missing before a producer's first record.
    """
    sequence, before, visible = sql.col("sequence"), sql.col("before"), sql.col("visible")
    missing, is_first = sql.col("missing") > 0, sql.col("is_first")
    may_be_compacted, may_be_cut = _may_be_compacted(compacted_topics), _may_be_cut()
    gap = {"first": before + 1, "last": sequence - 1, "count": sql.col("missing")}
    single = {"first": sequence, "last": sequence, "count": sql.lit(1)}
    at, again = _join_position("partition", "at"), _join_position("place_before.in_partition", "place_before.at")
    return find_by_rules(
        _order_by_sequence(place, SCOPES[scope], first_sequence),
        {
            "gap": (missing & ~may_be_compacted & ~may_be_cut, gap),
            "compacted-sequence": (missing & may_be_compacted, gap),
            "cut-sequence": (missing & ~may_be_compacted & may_be_cut, gap),
            "aborted-sequence": (~visible & is_first, single),
            "duplicate": (visible & ~is_first, {**single, "note": sql.concat(at, sql.lit(" as "), again)}),
            "inversion": (
                visible & is_first & (sequence < sql.col("highest_earlier")),
                {**single, "note": sql.concat(at, sql.lit(" after "), sql.col("highest_earlier"))},
            ),
        },
        producer=sql.col("producer"),
    )


def _order_by_sequence(place: AuditedPlace, keys: Collection[str], first_sequence: int | None) -> DataFrame:
    """Add to each record the sequence `before` it, that record's place, and the `highest_earlier` sequence.

    Among records with the same sequence visible ones come first, then the oldest: that one `is_first`. `missing` is the
    number of sequences between a record and the one before.
    """
    numbered = place.records.where("producer is not null and sequence is not null")
    by_sequence = Window.partitionBy(*keys).orderBy("sequence", sql.desc("visible"), "broker_ms", "partition", "at")
    by_offset = Window.partitionBy("topic", "partition", "producer").orderBy("at")
    earlier = by_offset.rowsBetween(Window.unboundedPreceding, -1)
    neighbour, sequence = sql.lag("sequence").over(by_sequence), sql.col("sequence")
    before = neighbour if first_sequence is None else sql.coalesce(neighbour, sql.lit(first_sequence - 1))
    reach = sql.least(sql.col("before"), sql.lit(0)) + FARTHEST
    distance = sql.when(sequence <= reach, sequence - sql.col("before")).otherwise(FARTHEST)
    where = sql.struct(sql.col("partition").alias("in_partition"), "at", "rank")
    visible_sequence = sql.when(sql.col("visible"), sql.col("sequence"))
    columns = {
        "before": before,
        "is_first": ~neighbour.eqNullSafe(sequence),
        "place_before": sql.lag(where).over(by_sequence),
    }
    in_order = numbered.withColumn("highest_earlier", sql.max(visible_sequence).over(earlier)).withColumns(columns)
    missing = sql.when(sequence > sql.col("before"), distance - 1).otherwise(0)
    return _add_cuts(in_order, place.cuts, keys).withColumn("missing", missing)


def _add_cuts(numbered: DataFrame, cuts: PlaceCuts, keys: Collection[str]) -> DataFrame:
    """Add the sequences of a record's producer that may be cut off: those up to `cut_until`, and from `cut_from` on.

    A producer that uses several partitions may have sent a missing sequence to a partition whose first records are
    gone. So every sequence below its first one there may be cut off, and likewise every one above its last one in a
    partition that continues.
    """
    partitions = {*cuts.before, *cuts.after}
    if not partitions:
        return numbered.withColumns(dict.fromkeys(("cut_until", "cut_from"), sql.lit(None).cast("bigint")))
    rows = [(*partition, partition in cuts.before, partition in cuts.after) for partition in partitions]
    cut = numbered.sparkSession.createDataFrame(rows, CUTS)
    ends = sql.min("sequence").alias("first"), sql.max("sequence").alias("last")
    by_partition = numbered.groupBy("topic", "partition", "producer").agg(*ends)
    by_producer = by_partition.join(sql.broadcast(cut), ["topic", "partition"]).groupBy(*keys)
    until, since = sql.max(sql.expr("if(before, first, null)")), sql.min(sql.expr("if(after, last, null)"))
    cut_ends = by_producer.agg(until.alias("cut_until"), since.alias("cut_from"))
    return numbered.join(cut_ends, list(keys), "left")


def _may_be_cut() -> Column:
    below = sql.col("sequence") <= sql.col("cut_until")
    above = sql.col("before") >= sql.col("cut_from")
    return sql.coalesce(below, sql.lit(False)) | sql.coalesce(above, sql.lit(False))


def _may_be_compacted(compacted_topics: Collection[str]) -> Column:
    """Whether the neighbours of a gap have at least as many offsets without a record between them as the gap is wide.

    If there are fewer, some of the missing records never came to the log. Neighbours in two partitions, or a single
    one, do not tell.
    """
    place_before = sql.col("place_before")
    offsets = (sql.col("at") - place_before["at"]) - (sql.col("rank") - place_before["rank"])
    tells = sql.col("partition").eqNullSafe(place_before["in_partition"]) & (sql.col("at") > place_before["at"])
    return sql.col("topic").isin(*compacted_topics) & (~tells | (offsets >= sql.col("missing")))


def _join_position(partition: str, offset: str) -> Column:
    return sql.concat_ws(":", partition, offset)
