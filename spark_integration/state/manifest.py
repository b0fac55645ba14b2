"""What an archive holds: the ranges of offsets of each batch, and the files that they are in (docs/SPARK.md, archive).

Beside the data lies ``_kafkacompat_archive``: ``archive.json`` says what the archive is, ``manifest/N.json`` what the
commit of that number did. Offsets that a commit names are in the archive once; a file that none names is not part of it.
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

# A topic that is gone has none, and a broker from before KIP-516 tells a zero for each.
UNKNOWN_IDS = {"", "AAAAAAAAAAAAAAAAAAAAAA"}


@dataclass(frozen=True)
class DataFile:
    """A file of the archive; *path* is below the archive's folder. Tables (Delta, Iceberg) name theirs themselves."""

    path: str
    size_bytes: int
    spans: tuple[RecordSpan, ...]


class OffsetRange(NamedTuple):
    """What a commit has read of a partition: from *from_offset* up to *until_offset*, which is not in it.

    No two ranges of an archive overlap. *records* is how many there were, fewer than offsets where there are transaction
    markers, aborted records, or what compaction or retention took. *first_offset* and *last_offset* are None where there
    were none. *topic_id* is the id of the topic (KIP-516), which is another one once a topic is deleted and made anew;
    one of `UNKNOWN_IDS` where the broker did not tell.
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
    """One step of the archive, there as a whole or not at all.

    *kind* is ``open`` (a run begins; runs before it may commit no more), ``batch`` (a micro-batch of the query
    *query_id* was added) or ``compact`` (*files* and *ranges* are all there are, whatever came before;
    *removed* files have been merged).
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
        """Write it as the manifest has it."""
        fields = asdict(self)
        fields["ranges"] = [one._asdict() for one in self.ranges]
        fields["files"] = [{**asdict(one), "spans": [span._asdict() for span in one.spans]} for one in self.files]
        return json.dumps({"version": VERSION, **fields})


def parse_commit(text: str) -> ArchiveCommit:
    """Read what `Commit.as_json` wrote; raises PipelineError."""
    try:
        fields = json.loads(text)
        if fields.pop("version") != VERSION:
            raise ValueError("another version")
        ranges = tuple(OffsetRange(**one) for one in fields.pop("ranges"))
        files = tuple(_parse_data_file(one) for one in fields.pop("files"))
        queries, removed = tuple(fields.pop("queries")), tuple(fields.pop("removed"))
        return ArchiveCommit(ranges=ranges, files=files, queries=queries, removed=removed, **fields)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise PipelineError(
            f"the archive's manifest is damaged ({text[:60]!r}…, {problem}): restore it from a copy"
        ) from problem


def _parse_data_file(fields: dict[str, Any]) -> DataFile:
    return DataFile(fields["path"], fields["size_bytes"], tuple(RecordSpan(**one) for one in fields["spans"]))


@dataclass(frozen=True)
class ArchiveDescription:
    """What an archive is, from its beginning: its *format* (parquet, delta, iceberg) and how its folders are split."""

    format: str
    partition_by: tuple[str, ...]
    archive_id: str

    def as_json(self) -> str:
        """Write it as archive.json."""
        return json.dumps({"version": VERSION, **asdict(self)})


@dataclass(frozen=True)
class ArchiveManifest:
    """The commits of an archive that count, which are those from the last compaction on, and what they come to."""

    description: ArchiveDescription
    commits: tuple[ArchiveCommit, ...]

    @property
    def number(self) -> int:
        """The number of the last commit; 0 before the first."""
        return self.commits[-1].number if self.commits else 0

    @property
    def ranges(self) -> list[OffsetRange]:
        """Every range that was archived, in the order of the commits."""
        return [one for commit in self.commits for one in commit.ranges]

    @property
    def files(self) -> list[DataFile]:
        """Every file that is part of the archive; none for Delta and Iceberg, which name theirs themselves."""
        return [one for commit in self.commits for one in commit.files]

    @property
    def records(self) -> int:
        """How many records the archive holds."""
        return sum(one.records for one in self.ranges)

    @property
    def queries(self) -> set[str]:
        """The ids of the queries (in their checkpoints) that have added to it."""
        named = {commit.query_id for commit in self.commits if commit.query_id}
        return named.union(*(commit.queries for commit in self.commits))

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic at the time that it was archived, where the broker told it."""
        return known_topic_ids(self.ranges)

    @cached_property
    def covered(self) -> dict[TopicPartition, list[Interval]]:
        """What has been read of each partition, joined: in order, and with gaps between them."""
        return covered_intervals(self.ranges)

    def ends(self) -> Offsets:
        """Return the first offset of each partition behind all that was archived."""
        return {partition: intervals[-1][1] for partition, intervals in self.covered.items()}


def known_topic_ids(ranges: Iterable[OffsetRange]) -> dict[str, str]:
    """Return the ids of topics, of those that are known."""
    return {one.topic: one.topic_id for one in ranges if one.topic_id not in UNKNOWN_IDS}


def covered_intervals(ranges: Iterable[OffsetRange]) -> dict[TopicPartition, list[Interval]]:
    """Join ranges to intervals by partition."""
    found: dict[TopicPartition, list[Interval]] = {}
    for one in ranges:
        found.setdefault(one.topic_partition, []).append((one.from_offset, one.until_offset))
    return {partition: join_intervals(intervals) for partition, intervals in found.items()}


def order_commits(commits: Iterable[ArchiveCommit], path: str) -> tuple[ArchiveCommit, ...]:
    """Return the commits that count; raises PipelineError where one is missing."""
    ordered = sorted(commits, key=lambda commit: commit.number)
    # What a compaction replaced is deleted after it, and may still be there in part.
    compactions = [commit.number for commit in ordered if commit.kind == "compact"]
    first = compactions[-1] if compactions else 1
    counting = tuple(commit for commit in ordered if commit.number >= first)
    for expected, commit in enumerate(counting, first):
        if commit.number != expected:
            raise PipelineError(
                f"{path}/{COMMITS} lacks commit {expected}: restore the file, or archive elsewhere anew"
            )
    return counting
