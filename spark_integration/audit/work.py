"""The steps of an audit: a place is judged, then the next, then one by the other, and all is put together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.audit import holes, latency, sequences
from spark_integration.audit.archives import ArchivePlace
from spark_integration.audit.batches import Reader
from spark_integration.audit.comparison import compared
from spark_integration.audit.fields import Fields
from spark_integration.audit.findings import Findings, Row
from spark_integration.audit.places import ARCHIVE, TOPIC, Place
from spark_integration.audit.producers import producers_of, topics_of
from spark_integration.audit.ranges import Ranges
from spark_integration.errors import PipelineError

# Offsets without a record, before they are explained.
HOLE = "hole"
COMPACTED_NOTE = (
    "of a compacted topic it cannot be told whether a batch that is gone was cleaned or lost: it counts as compacted"
)


@dataclass(frozen=True)
class Judging:
    """How records are judged.

    *sequence_scope*: whether a producer's sequence counts by ``topic`` or by ``partition``. *limit*: how many findings of
    a kind are told in detail. *examine*: how many holes in topics' offsets are looked at in the broker's log.
    """

    fields: Fields = field(default_factory=Fields)
    sequence_scope: str = sequences.TOPIC_SCOPE
    limit: int = 20
    examine: int = 100_000


class Work:
    """Judges places, and collects what is to be told of them."""

    def __init__(self, spark: SparkSession, judging: Judging) -> None:
        self.spark = spark
        self.judging = judging
        self.places: list[Place] = []
        self.found = Findings(judging.limit)
        self.topics: list[Row] = []
        self.latency: list[Row] = []
        self.producers: list[Row] = []
        self.notes: list[str] = []

    def judge_topics(self, place: Place, ranges: Ranges, read: Reader, compacted_topics: Collection[str]) -> None:
        """Judge the records of topics, and the offsets that have none."""
        offsets: dict[str, int | None] = {}
        for (topic, _), one in ranges.items():
            offsets[topic] = (offsets.get(topic) or 0) + one.end - one.start
        hidden = place.records.where("not visible").groupBy("topic", "partition")
        first, last = sql.min("at").alias("first"), sql.max("at").alias("last")
        aborted = hidden.agg(first, last, sql.count("*").alias("count"))
        self._judge(place, compacted_topics, offsets, {"aborted": aborted, HOLE: place.holes})
        self._explain_holes(place, read, compacted_topics)

    def judge_archive(self, archive: ArchivePlace) -> None:
        """Judge the records of an archive, and whether all are there that its manifest counts."""
        at = sql.col("at")
        again = archive.place.records.where("at = previous").select(
            "topic", "partition", at.alias("first"), at.alias("last"), sql.lit(1).alias("count")
        )
        offsets = dict.fromkeys(archive.topics)
        further = {"repeated": again, "lost": archive.lost(self.spark), HOLE: archive.place.holes}
        self._judge(archive.place, (), offsets, further)
        for topic in offsets:
            lost = self.found.counts[ARCHIVE, topic, "lost"]
            self.found.counts[ARCHIVE, topic, "absent"] = self.found.counts[ARCHIVE, topic, HOLE] - lost

    def compare(
        self,
        topic: Place,
        archive: ArchivePlace,
        ranges: Ranges,
        compacted_topics: Collection[str],
        *,
        to_the_end: bool,
    ) -> None:
        """Compare an archive with the topics record by record."""
        comparison = compared(self.spark, topic, archive, ranges, compacted_topics, to_the_end=to_the_end)
        self.found.add(ARCHIVE, comparison._asdict())

    def release(self) -> None:
        """Let Spark forget what it kept."""
        for place in self.places:
            place.release()

    def _judge(
        self,
        place: Place,
        compacted_topics: Collection[str],
        offsets: Mapping[str, int | None],
        further: Mapping[str, DataFrame],
    ) -> None:
        self.places.append(place)
        fields = self.judging.fields
        rows = topics_of(place, offsets)
        self._check_fields(rows)
        told = sequences.judged(
            place, compacted_topics, scope=self.judging.sequence_scope, first_sequence=fields.first_sequence
        )
        by_sequence = told.by_kind() if fields.sequence else {}
        self.found.add(place.name, {**by_sequence, **self._unattributed(place), **further})
        self.topics += rows
        if fields.sequence or fields.producer:
            self.producers += producers_of(place, told, self.judging.limit)
        self.latency += latency.rows(place, by_field=fields.event_time is not None)

    def _check_fields(self, rows: list[Row]) -> None:
        """Refuse fields that no record has; raises PipelineError."""
        fields, records = self.judging.fields, sum(row["records"] for row in rows)
        for option, place, found in (
            ("producer", fields.producer, "attributed"),
            ("sequence", fields.sequence, "numbered"),
        ):
            if place and records and not sum(row[found] for row in rows):
                raise PipelineError(
                    f"none of {records:,} records has a {option} at {place!r}: correct --{option}-field"
                )

    def _unattributed(self, place: Place) -> dict[str, DataFrame]:
        lacking = [f"{name} is null" for name in ("producer", "sequence") if getattr(self.judging.fields, name)]
        if not lacking:
            return {}
        at = sql.col("at")
        found = place.visible.where(" or ".join(lacking))
        columns = ("topic", "partition", "producer", at.alias("first"), at.alias("last"), sql.lit(1).alias("count"))
        return {"unattributed": found.select(*columns)}

    def _explain_holes(self, place: Place, read: Reader, compacted_topics: Collection[str]) -> None:
        left = {topic: count for (at, topic, kind), count in self.found.counts.items() if (at, kind) == (TOPIC, HOLE)}
        for part in holes.explained(self._holes(place) if left else (), read, compacted_topics):
            self.found.counts[TOPIC, part.topic, part.kind] += part.offsets
            row = {name: value for name, value in part._asdict().items() if name != "kind"}
            self.found.keep(TOPIC, part.kind, {**row, "count": part.offsets})
            left[part.topic] -= part.offsets
        for topic, count in left.items():
            self.found.counts[TOPIC, topic, holes.UNEXAMINED] += count
        if any(self.found.counts[TOPIC, topic, holes.COMPACTED] for topic in compacted_topics):
            self.notes.append(COMPACTED_NOTE)

    def _holes(self, place: Place) -> Iterator[holes.Hole]:
        first = place.holes.orderBy("topic", "partition", "first").limit(self.judging.examine)
        for row in first.toLocalIterator():
            yield holes.Hole(row.topic, row.partition, row.first, row.last)
