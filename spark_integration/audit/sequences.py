"""What the sequences say that producers number their records with: gaps, duplicates, inversions."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from spark_integration.audit.places import Place

TOPIC_SCOPE, PARTITION_SCOPE = "topic", "partition"
SCOPES = {TOPIC_SCOPE: ("topic", "producer"), PARTITION_SCOPE: ("topic", "partition", "producer")}


class Sequences(NamedTuple):
    """Frames of findings (`findings.SCHEMA`) of `topic` and `producer`; `first` and `last` are sequences.

    `gaps`: those that no record has; `removed`: the same where compaction may have taken them; `aborted`: one that only
    aborted transactions have; `duplicates`: one that `count` records have beyond the one; `inversions`: one that comes
    behind a higher one in its partition. A `note` says at which partition:offset.
    """

    gaps: DataFrame
    removed: DataFrame
    aborted: DataFrame
    duplicates: DataFrame
    inversions: DataFrame

    def by_kind(self) -> dict[str, DataFrame]:
        """Return the frames by the kinds that they are of."""
        return {
            "gap": self.gaps,
            "compacted-sequence": self.removed,
            "aborted-sequence": self.aborted,
            "duplicate": self.duplicates,
            "inversion": self.inversions,
        }


def judged(
    place: Place, compacted_topics: Collection[str] = (), *, scope: str = TOPIC_SCOPE, first_sequence: int | None = None
) -> Sequences:
    """Judge a place's sequences; *scope*: whether a producer counts by topic or by partition.

    *first_sequence* is what each producer begins with; without it nothing is missing before the first that is there.
    """
    numbered = place.records.where(sql.col("producer").isNotNull() & sql.col("sequence").isNotNull())
    keys = SCOPES[scope]
    distinct = _distinct(numbered, keys)
    gaps, removed = _gaps(distinct, keys, compacted_topics, first_sequence)
    return Sequences(
        gaps=gaps,
        removed=removed,
        aborted=distinct.where("copies = 0").select(*keys, *_one()),
        duplicates=distinct.where("copies > 1").select(*keys, *_one(sql.col("copies") - 1), _both_places()),
        inversions=_inversions(numbered.where("visible"), keys),
    )


def _distinct(numbered: DataFrame, keys: Collection[str]) -> DataFrame:
    """A row for each sequence, where it was seen first, and how many records that are visible have it."""
    place = sql.struct(sql.col("partition").alias("in_partition"), "at", "rank")
    position = sql.when(sql.col("visible"), sql.struct("partition", "at"))
    return numbered.groupBy(*keys, "sequence").agg(
        sql.sum(sql.col("visible").cast("int")).alias("copies"),
        sql.min(place).alias("place"),
        sql.min(position).alias("first_at"),
        sql.max(position).alias("last_at"),
    )


def _one(count: Column | None = None) -> list[Column]:
    """The columns of a finding of one sequence."""
    number = sql.col("sequence")
    return [number.alias("first"), number.alias("last"), (sql.lit(1) if count is None else count).alias("count")]


def _both_places() -> Column:
    ends = [sql.concat_ws(":", f"{end}.partition", f"{end}.at") for end in ("first_at", "last_at")]
    return sql.concat(sql.lit("at "), ends[0], sql.lit(" and "), ends[1]).alias("note")


def _gaps(
    distinct: DataFrame, keys: Collection[str], compacted_topics: Collection[str], first_sequence: int | None
) -> tuple[DataFrame, DataFrame]:
    order = Window.partitionBy(*keys).orderBy("sequence")
    before = sql.lag("sequence").over(order)
    if first_sequence is not None:
        before = sql.coalesce(before, sql.lit(first_sequence - 1))
    with_previous = distinct.withColumns({"before": before, "place_before": sql.lag("place").over(order)})
    gaps = with_previous.where("sequence - before > 1").select(
        *keys,
        (sql.col("before") + 1).alias("first"),
        (sql.col("sequence") - 1).alias("last"),
        (sql.col("sequence") - sql.col("before") - 1).alias("count"),
        _may_be_compacted(compacted_topics).alias("is_removed"),
    )
    return gaps.where("not is_removed").drop("is_removed"), gaps.where("is_removed").drop("is_removed")


def _may_be_compacted(compacted_topics: Collection[str]) -> Column:
    """Whether between the neighbours of a gap there are at least as many offsets without a record as it is wide.

    With fewer some of it never came to the log. Neighbours in two partitions, or only one, do not tell.
    """
    missing = sql.col("sequence") - sql.col("before") - 1
    here, there = sql.col("place"), sql.col("place_before")
    offsets = (here["at"] - there["at"]) - (here["rank"] - there["rank"])
    tells = here["in_partition"].eqNullSafe(there["in_partition"]) & (here["at"] > there["at"])
    return sql.col("topic").isin(*compacted_topics) & (~tells | (offsets >= missing))


def _inversions(visible: DataFrame, keys: Collection[str]) -> DataFrame:
    in_partition = Window.partitionBy("topic", "partition", "producer").orderBy("at")
    earlier = in_partition.rowsBetween(Window.unboundedPreceding, -1)
    copies = Window.partitionBy(*keys, "sequence").orderBy("broker_ms", "partition", "at")
    ordered = visible.withColumns({"behind": sql.max("sequence").over(earlier), "copy": sql.row_number().over(copies)})
    # A second copy is a duplicate; that it comes late goes without saying.
    note = sql.concat(sql.lit("at "), sql.concat_ws(":", "partition", "at"), sql.lit(" behind "), sql.col("behind"))
    return ordered.where("copy = 1 and sequence < behind").select("topic", "producer", *_one(), note.alias("note"))
