"""The manifest of an archive: the ranges of offsets of each batch, and their files (docs/SPARK.md). Imports no pyspark.

Beside the data lies ``_kafkacompat_archive``: ``archive.json`` describes the archive, ``manifest/N.json`` is commit N.
An archive holds the offsets that a commit names exactly once. A file that no commit names is not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

from spark_integration.errors import PipelineError
from spark_integration.topics.offsets import Interval, Offsets, RecordSpan, TopicPartition, join_intervals

FOLDER = "_kafkacompat_archive"
DESCRIPTION = f"{FOLDER}/archive.json"
COMMITS = f"{FOLDER}/manifest"
VERSION = 1

# Topics that are gone have no id, and brokers from before KIP-516 report zeros for all.
UNKNOWN_IDS = {"", "AAAAAAAAAAAAAAAAAAAAAA"}


@dataclass(frozen=True)
class DataFile:
    """A file of the archive; *path* is relative to the archive's folder.

    Tables (Delta, Iceberg) name their files themselves.
    """

    path: str
    size_bytes: int
    spans: tuple[RecordSpan, ...]


class OffsetRange(NamedTuple):
    """The offsets of a partition that a commit has read, from *from_offset* up to *until_offset*, which is excluded.

    No two ranges of an archive overlap. *records* is the number of records, which is smaller than that of offsets if
    there are transaction markers, aborted records, or records that compaction or retention removed. *first_offset* and
    *last_offset* are None if there is no record. *topic_id* is the id of the topic (KIP-516), which changes if the
    topic is deleted and created again; it is one of `UNKNOWN_IDS` if the broker did not report it.
    """

    topic: str
    partition: int
    topic_id: str
    from_offset: int
    until_offset: int
    records: int
    first_offset: int | None
    last_offset: int | None

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class ArchiveCommit:
    """One step of the archive, which exists as a whole or not at all.

    *kind* is ``open`` (a run begins, and earlier runs may commit no more), ``batch`` (a micro-batch of the query
    *query_id* was added) or ``compact`` (*files* and *ranges* replace those of all earlier commits; *removed* files
    were merged).
    """

    number: int
    kind: str
    run_id: str
    time_ms: int
    query_id: str | None = None
    batch_id: int | None = None
    ranges: tuple[OffsetRange, ...] = ()
    files: tuple[DataFile, ...] = ()
    queries: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def as_json(self) -> str:
        """Return the commit as JSON, as the manifest stores it."""
        fields = asdict(self)
        fields["ranges"] = [archived._asdict() for archived in self.ranges]
        fields["files"] = [{**asdict(file), "spans": [span._asdict() for span in file.spans]} for file in self.files]
        return json.dumps({"version": VERSION, **fields})


def parse_commit(text: str) -> ArchiveCommit:
    """Parse the JSON of `ArchiveCommit.as_json`; raises PipelineError."""
    try:
        fields = json.loads(text)
        if fields.pop("version") != VERSION:
            raise ValueError("another version")
        ranges = tuple(OffsetRange(**values) for values in fields.pop("ranges"))
        files = tuple(_parse_data_file(values) for values in fields.pop("files"))
        queries, removed = tuple(fields.pop("queries")), tuple(fields.pop("removed"))
        return ArchiveCommit(ranges=ranges, files=files, queries=queries, removed=removed, **fields)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise PipelineError(
            f"the archive's manifest is damaged ({text[:60]!r}…, {problem}): restore it from a copy"
        ) from problem


def _parse_data_file(fields: dict[str, Any]) -> DataFile:
    return DataFile(fields["path"], fields["size_bytes"], tuple(RecordSpan(**values) for values in fields["spans"]))


@dataclass(frozen=True)
class ArchiveDescription:
    """What an archive is from its beginning: its *format* (parquet, delta, iceberg), and the columns of its folders."""

    format: str
    partition_by: tuple[str, ...]
    archive_id: str

    def as_json(self) -> str:
        """Return the description as JSON, as archive.json stores it."""
        return json.dumps({"version": VERSION, **asdict(self)})


@dataclass(frozen=True)
class ArchiveManifest:
    """The valid commits of an archive, from the last compaction on, and their sums."""

    description: ArchiveDescription
    commits: tuple[ArchiveCommit, ...]

    @property
    def number(self) -> int:
        """The number of the last commit; 0 before the first."""
        return self.commits[-1].number if self.commits else 0

    @property
    def ranges(self) -> list[OffsetRange]:
        """Every range that was archived, in the order of the commits."""
        return [archived for commit in self.commits for archived in commit.ranges]

    @property
    def files(self) -> list[DataFile]:
        """Every file that is part of the archive; none for Delta and Iceberg, which name theirs themselves."""
        return [file for commit in self.commits for file in commit.files]

    @property
    def records(self) -> int:
        """The number of records in the archive."""
        return sum(archived.records for archived in self.ranges)

    @property
    def queries(self) -> set[str]:
        """The ids of the queries (in their checkpoints) that have added to the archive."""
        named = {commit.query_id for commit in self.commits if commit.query_id}
        return named.union(*(commit.queries for commit in self.commits))

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic when it was archived, if the broker reported it."""
        return known_topic_ids(self.ranges)

    @cached_property
    def covered(self) -> dict[TopicPartition, list[Interval]]:
        """The intervals of each partition that were read: in order, and with gaps between them."""
        return covered_intervals(self.ranges)

    def ends(self) -> Offsets:
        """Return the first offset of each partition after everything that was archived."""
        return {partition: intervals[-1][1] for partition, intervals in self.covered.items()}


def known_topic_ids(ranges: Iterable[OffsetRange]) -> dict[str, str]:
    """Return the known ids of topics."""
    return {archived.topic: archived.topic_id for archived in ranges if archived.topic_id not in UNKNOWN_IDS}


def covered_intervals(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, list[Interval]]:
    """Return the ranges joined to intervals, by partition."""
    intervals_by_partition: dict[TopicPartition, list[Interval]] = {}
    for archived in ranges:
        intervals_by_partition.setdefault(archived.topic_partition, []).append(
            (archived.from_offset, archived.until_offset)
        )
    return {partition: join_intervals(intervals) for partition, intervals in intervals_by_partition.items()}


def order_commits(commits: Iterable[ArchiveCommit], path: str) -> tuple[ArchiveCommit, ...]:
    """Return the valid commits in order; raises PipelineError if one is missing."""
    ordered = sorted(commits, key=lambda commit: commit.number)
    # Commits that a compaction replaced are deleted after it, and some may still exist.
    compactions = [commit.number for commit in ordered if commit.kind == "compact"]
    first = compactions[-1] if compactions else 1
    counting = tuple(commit for commit in ordered if commit.number >= first)
    for expected, commit in enumerate(counting, first):
        if commit.number != expected:
            raise PipelineError(
                f"{path}/{COMMITS} lacks commit {expected}: restore the file, or archive the topics again elsewhere"
            )
    return counting
