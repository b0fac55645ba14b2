"""The steps of an audit: each place is judged, then an archive is compared with its topics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_integration.audit import holes, latency, sequences
from spark_integration.audit.archive_records import AuditedArchive
from spark_integration.audit.comparison import compare_records
from spark_integration.audit.findings import Findings, Row, find_by_rules, union_findings
from spark_integration.audit.log_batches import ReadLogBatches
from spark_integration.audit.places import ARCHIVE, RECORD, TOPIC, AuditedPlace
from spark_integration.audit.producers import producer_rows, topic_rows
from spark_integration.audit.ranges import Ranges
from spark_integration.audit.settings import AuditSettings
from spark_integration.errors import PipelineError
from spark_integration.topics.frames import persist_frame

# The kind of offsets without a record before they are explained.
HOLE = "hole"
COMPACTED_NOTE = (
    "of a compacted topic it cannot be told whether a batch that is gone was cleaned or lost: it counts as compacted"
)


class Auditor:
    """Judges places, and collects what the summary reports of them."""

    def __init__(self, spark: SparkSession, settings: AuditSettings) -> None:
        self.spark = spark
        self.settings = settings
        self.places: list[AuditedPlace] = []
        self.findings = Findings(settings.limit)
        self.topics: list[Row] = []
        self.latency: list[Row] = []
        self.producers: list[Row] = []
        self.notes: list[str] = []

    def judge_topics(
        self, place: AuditedPlace, ranges: Ranges, read: ReadLogBatches, compacted_topics: Collection[str]
    ) -> None:
        """Judge the records of topics, and the offsets without a record."""
        offsets: dict[str, int | None] = {}
        for (topic, _), read_range in ranges.items():
            offsets[topic] = (offsets.get(topic) or 0) + read_range.end - read_range.start
        self._judge(place, compacted_topics, offsets)
        self._explain_holes(place, read, compacted_topics)

    def judge_archive(self, archive: AuditedArchive) -> None:
        """Judge the records of an archive, and whether it holds all records that its manifest counts."""
        offsets = dict.fromkeys(archive.topics)
        self._judge(archive.place, (), offsets)
        self.findings.add(ARCHIVE, union_findings({"lost": archive.find_lost(self.spark)}))
        for topic in offsets:
            lost = self.findings.counts[ARCHIVE, topic, "lost"]
            self.findings.counts[ARCHIVE, topic, "absent"] = self.findings.counts[ARCHIVE, topic, HOLE] - lost

    def compare(
        self,
        topic: AuditedPlace,
        archive: AuditedArchive,
        ranges: Ranges,
        compacted_topics: Collection[str],
        *,
        to_the_end: bool,
    ) -> None:
        """Compare an archive with the topics, record by record."""
        comparison = compare_records(self.spark, topic, archive, ranges, compacted_topics, to_the_end=to_the_end)
        with persist_frame(union_findings(comparison._asdict())) as findings:
            self.findings.add(ARCHIVE, findings)

    def release(self) -> None:
        """Let Spark drop the places' rows."""
        for place in self.places:
            place.release()

    def _judge(self, place: AuditedPlace, compacted_topics: Collection[str], offsets: Mapping[str, int | None]) -> None:
        self.places.append(place)
        fields = self.settings.fields
        rows = topic_rows(place, offsets)
        self._check_fields(rows)
        self.topics += rows
        with persist_frame(self._collect_findings(place, compacted_topics)) as findings:
            self.findings.add(place.name, findings)
            if fields.sequence or fields.producer:
                self.producers += producer_rows(place, findings, self.settings.limit)
        self.latency += latency.latency_rows(place, by_field=fields.event_time is not None)

    def _collect_findings(self, place: AuditedPlace, compacted_topics: Collection[str]) -> DataFrame:
        fields = self.settings.fields
        needed = [name for name in ("producer", "sequence") if getattr(fields, name)]
        findings = find_in_place(place, needed)
        if fields.sequence is None:
            return findings
        return findings.unionByName(
            sequences.sequence_findings(
                place, compacted_topics, scope=self.settings.sequence_scope, first_sequence=fields.first_sequence
            )
        )

    def _check_fields(self, rows: list[Row]) -> None:
        """Raise PipelineError for a field that no record has."""
        fields, records = self.settings.fields, sum(row["records"] for row in rows)
        for noun, place, count_name in (
            ("a producer", fields.producer, "attributed"),
            ("a sequence", fields.sequence, "numbered"),
            ("an event time", fields.event_time, "timed"),
        ):
            if place and records and not sum(row[count_name] for row in rows):
                option = noun.partition(" ")[2].replace(" ", "-")
                raise PipelineError(f"none of {records:,} records has {noun} at {place!r}: correct --{option}-field")

    def _explain_holes(self, place: AuditedPlace, read: ReadLogBatches, compacted_topics: Collection[str]) -> None:
        left = {
            topic: count for (at, topic, kind), count in self.findings.counts.items() if (at, kind) == (TOPIC, HOLE)
        }
        for part in holes.explain_holes(self._list_holes(place) if left else (), read, compacted_topics):
            self.findings.counts[TOPIC, part.topic, part.kind] += part.offsets
            row = {name: value for name, value in part._asdict().items() if name != "kind"}
            self.findings.keep(TOPIC, part.kind, {**row, "count": part.offsets})
            left[part.topic] -= part.offsets
        for topic, count in left.items():
            self.findings.counts[TOPIC, topic, holes.UNEXAMINED] += count
        if any(self.findings.counts[TOPIC, topic, holes.COMPACTED] for topic in compacted_topics):
            self.notes.append(COMPACTED_NOTE)

    def _list_holes(self, place: AuditedPlace) -> Iterator[holes.OffsetHole]:
        first = place.holes.orderBy("topic", "partition", "first").limit(self.settings.examine)
        for row in first.toLocalIterator():
            yield holes.OffsetHole(row.topic, row.partition, row.first, row.last)


def find_in_place(place: AuditedPlace, needed: Collection[str]) -> DataFrame:
    """Return the findings that each record, or edge, makes by itself; *needed* are columns that a record should have."""
    at, previous, is_record = sql.col("at"), sql.col("previous"), sql.col("kind") == RECORD
    single = {"first": at, "last": at, "count": sql.lit(1)}
    lacks = reduce(lambda some, name: some | sql.col(name).isNull(), needed, sql.lit(False))
    hole = {"first": previous + 1, "last": at - 1, "count": at - previous - 1}
    return find_by_rules(
        place.rows,
        {
            "aborted": (is_record & ~sql.col("visible"), single),
            "unattributed": (is_record & sql.col("visible") & lacks, single),
            "repeated": (is_record & (at == previous), single),
            HOLE: (place.follows_hole, hole),
        },
    )
