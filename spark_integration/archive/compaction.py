"""Compaction of an archive: small files are merged between two batches, by a commit that names what it replaces."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from spark_integration.archive.layout import COLUMNS, SCHEMA
from spark_integration.archive.ledger import ArchiveLedger
from spark_integration.archive.parquet import count_range
from spark_integration.errors import PipelineError
from spark_integration.state.archives import read_manifest
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import ArchiveCommit, ArchiveManifest, DataFile, OffsetRange, known_topic_ids
from spark_integration.topics.offsets import RecordSpan, TopicPartition

# A commit is a file of some hundred bytes, and every start of a run reads them all.
MANIFEST_COMMITS = 1000


class FileMerge:
    """Merges the small files (less than half of the target size) of each folder that has at least *least* of them."""

    def __init__(
        self, spark: SparkSession, files: HadoopFiles, ledger: ArchiveLedger, least: int, target_bytes: int
    ) -> None:
        self._spark, self._files, self._ledger = spark, files, ledger
        self._least, self._target_bytes = least, target_bytes

    def __call__(self) -> None:
        """Merge the files that are due, as one commit."""
        if not (due := files_to_merge(self._ledger.files.values(), self._least, self._target_bytes)):
            return
        removed = {file.path for file in due}
        draft = replace(
            draft_full_commit(self._read_manifest(), self._ledger),
            files=tuple(file for path, file in self._ledger.files.items() if path not in removed),
            removed=tuple(sorted(removed)),
        )
        self._ledger.commit(self._merge_files(due), draft, lambda staged: self._check(due, staged))

    def _read_manifest(self) -> ArchiveManifest:
        return read_manifest(self._spark, self._files.uri)

    def _merge_files(self, due: list[DataFile]) -> DataFrame:
        # Writing sets some configs, so it has a session of its own.
        reader = self._spark.newSession().read.schema(SCHEMA).option("basePath", self._files.uri)
        reader = reader.option("parquet.page.verify-checksum.enabled", "true")
        frame = reader.parquet(*(self._files.path(file.path) for file in due)).select(*COLUMNS)
        tasks = math.ceil(sum(file.size_bytes for file in due) / self._target_bytes)
        return frame.repartitionByRange(tasks, "topic", "date", "partition", "offset")

    def _check(self, due: list[DataFile], staged: ArchiveCommit) -> None:
        merged = [file for file in staged.files if file.path not in self._ledger.files]
        if sum_spans(due) != sum_spans(merged):
            raise PipelineError(f"merging files of {self._files.uri} would have changed what they hold: run it again")


class TableMerge:
    """Lets the table merge its small files after *least* batches."""

    def __init__(self, spark: SparkSession, files: HadoopFiles, ledger: ArchiveLedger, least: int) -> None:
        self._spark, self._files, self._ledger, self._least = spark, files, ledger, least

    def __call__(self) -> None:
        """Merge if it is due."""
        if self._ledger.batches_since_merge >= self._least:
            draft = draft_full_commit(read_manifest(self._spark, self._files.uri), self._ledger)
            self._ledger.commit(self._spark.createDataFrame([], SCHEMA), draft)


class ManifestMerge:
    """Shortens a manifest of many commits by one commit that holds everything they hold."""

    def __init__(self, spark: SparkSession, files: HadoopFiles, ledger: ArchiveLedger) -> None:
        self._spark, self._files, self._ledger = spark, files, ledger

    def __call__(self) -> None:
        """Write that commit if it is due."""
        if self._ledger.commits >= MANIFEST_COMMITS:
            self._ledger.restate(draft_full_commit(self._read_manifest(), self._ledger))

    def _read_manifest(self) -> ArchiveManifest:
        return read_manifest(self._spark, self._files.uri)


def draft_full_commit(manifest: ArchiveManifest, ledger: ArchiveLedger) -> ArchiveCommit:
    """Draft a commit that stands for all commits before it."""
    return replace(
        ledger.draft("compact", ranges=join_ranges(manifest.ranges)),
        files=tuple(ledger.files.values()),
        queries=tuple(sorted(ledger.queries)),
    )


def files_to_merge(files: Iterable[DataFile], least: int, target_bytes: int) -> list[DataFile]:
    """Return the small files of folders that have at least *least* of them, and never a single file."""
    folders: dict[str, list[DataFile]] = {}
    for file in files:
        if file.size_bytes < target_bytes / 2:
            folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    return [file for small in folders.values() if len(small) >= max(2, least) for file in small]


def sum_spans(files: Iterable[DataFile]) -> dict[TopicPartition, RecordSpan]:
    """Return the sum of the files' spans, by partition."""
    total: dict[TopicPartition, RecordSpan] = {}
    for span in (span for file in files for span in file.spans):
        before = total.get(TopicPartition(span.topic, span.partition))
        total[TopicPartition(span.topic, span.partition)] = span if before is None else join_spans(before, span)
    return total


def join_spans(first: RecordSpan, second: RecordSpan) -> RecordSpan:
    """Return two spans of one partition as one."""
    return first._replace(
        first_offset=min(first.first_offset, second.first_offset),
        last_offset=max(first.last_offset, second.last_offset),
        records=first.records + second.records,
    )


def join_ranges(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return the ranges in order, those that touch or overlap as one."""
    joined: list[OffsetRange] = []
    for following in sorted(
        ranges, key=lambda following: (following.topic, following.partition, following.from_offset)
    ):
        last = joined[-1] if joined else None
        if last and last.topic_partition == following.topic_partition and following.from_offset <= last.until_offset:
            topic_id = known_topic_ids((last, following)).get(following.topic, following.topic_id)
            longer = last._replace(topic_id=topic_id, until_offset=max(last.until_offset, following.until_offset))
            joined[-1] = count_range(longer, spans_of_ranges((last, following)))
        else:
            joined.append(following)
    return tuple(joined)


def spans_of_ranges(ranges: Iterable[OffsetRange]) -> list[RecordSpan]:
    """Return the records of ranges as spans."""
    return [
        RecordSpan(*archived.topic_partition, archived.first_offset, archived.last_offset, archived.records)
        for archived in ranges
        if archived.first_offset is not None and archived.last_offset is not None
    ]
