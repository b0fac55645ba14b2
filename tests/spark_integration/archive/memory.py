"""A folder in memory instead of Hadoop's, which can be killed at any change, and stores on top of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from spark_integration.archive.compaction import FileMerge, ManifestMerge
from spark_integration.archive.ledger import ArchiveLedger, staging_folder
from spark_integration.archive.parquet import ParquetStore, count_ranges
from spark_integration.archive.tables import TableStore, commit_mark
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import (
    COMMITS,
    FOLDER,
    ArchiveCommit,
    ArchiveDescription,
    ArchiveManifest,
    DataFile,
    OffsetRange,
    order_commits,
    parse_commit,
)
from spark_integration.topics.offsets import Interval, RecordSpan, TopicPartition

TOPIC = "t"
BATCH = 3
OFFSETS = 12


class KilledError(BaseException):
    """The process is gone."""


class Memory:
    """The part of `HadoopFiles` that an archive uses; *before_change* is called before each change."""

    uri = "memory:/archive"

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.before_change: Callable[[], None] = lambda: None
        self.after_rename: Callable[[str], None] = lambda _: None

    def put(self, name: str, content: Any) -> None:
        self.before_change()
        self.held[name] = content

    def path(self, name: str) -> str:
        return f"{self.uri}/{name}"

    def exists(self, name: str = "") -> bool:
        return name in self.held or any(other.startswith(f"{name}/") for other in self.held)

    def names(self, folder: str = "") -> list[str]:
        below = (name.removeprefix(f"{folder}/") for name in self.held if name.startswith(f"{folder}/"))
        return sorted({name.partition("/")[0] for name in below})

    def read(self, name: str) -> str:
        return cast(str, self.held[name])

    def write_new(self, name: str, text: str) -> None:
        self.before_change()
        if name in self.held:
            raise FileExistsError(name)
        self.held[name] = text

    def rename(self, name: str, to: str) -> None:
        self.before_change()
        if to in self.held:
            raise FileExistsError(to)
        self.held[to] = self.held.pop(name)
        self.after_rename(to)

    def remove(self, name: str) -> None:
        for other in [path for path in self.held if path == name or path.startswith(f"{name}/")]:
            self.before_change()
            self.held.pop(other, None)

    def make_folder(self, name: str = "") -> None:
        pass


def manifest_of(memory: Memory) -> ArchiveManifest:
    """Read the manifest like `read_manifest`."""
    commits = [parse_commit(memory.read(f"{COMMITS}/{name}")) for name in memory.names(COMMITS)]
    return ArchiveManifest(ArchiveDescription("parquet", ("topic",), "x"), order_commits(commits, memory.uri))


def list_seen(memory: Memory) -> dict[str, list[int]]:
    """Return the offsets that readers of the folder see, by file."""
    return {name: offsets for name, offsets in memory.held.items() if not name.startswith(FOLDER)}


def list_named(memory: Memory) -> list[int]:
    """Return the offsets in the files that the manifest names; KeyError if one is missing."""
    return sorted(offset for file in manifest_of(memory).files for offset in memory.held[file.path])


class Folder(ParquetStore):
    """Parquet files that are lists of offsets; a commit has two files, in a folder that is emptied first."""

    numbers = itertools.count()

    def __init__(self, memory: Memory) -> None:
        super().__init__(cast(Any, None), cast(HadoopFiles, memory), ("topic",), 0)
        self.memory = memory

    def stage(self, frame: Any, commit: ArchiveCommit) -> ArchiveCommit:
        folder = f"{staging_folder(commit)}/data"
        self.memory.remove(folder)
        for offsets in (frame[:1], frame[1:]):
            self.memory.put(f"{folder}/topic={TOPIC}/part-{next(self.numbers)}.parquet", offsets)
        files = [self._file(folder, name) for name in self.memory.names(f"{folder}/topic={TOPIC}")]
        ranges = count_ranges(commit.ranges, files) if commit.kind == "batch" else commit.ranges
        return replace(commit, files=(*commit.files, *files), ranges=ranges)

    def _file(self, folder: str, name: str) -> DataFile:
        offsets = self.memory.held[f"{folder}/topic={TOPIC}/{name}"]
        return DataFile(f"topic={TOPIC}/{name}", 10, (RecordSpan(TOPIC, 0, offsets[0], offsets[-1], len(offsets)),))


class Rows(TableStore):
    """A table with its rows in memory, as one file for each append."""

    def __init__(self, memory: Memory) -> None:
        self._files = cast(HadoopFiles, memory)
        self.memory = memory

    def publish(self, frame: Any, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        if commit.kind == "batch":
            self.memory.put(commit_mark(commit), frame)
        return commit

    def has(self, mark: str) -> bool:
        return mark in self.memory.held

    def holds_any(self, intervals: Mapping[TopicPartition, Sequence[Interval]]) -> bool:
        offsets = [offset for held in list_seen(self.memory).values() for offset in held]
        return any(
            first <= offset < until for ranges in intervals.values() for first, until in ranges for offset in offsets
        )

    def _count_records(self, commit: ArchiveCommit) -> ArchiveCommit:
        return commit

    def create(self) -> None: ...
    def with_mark(self, writer: Any, mark: str) -> Any: ...
    def merge(self) -> None: ...


class Forgetful(Rows):
    """A table without its history."""

    def has(self, mark: str) -> bool:
        return False


class Merge(FileMerge):
    """Merges the files of a folder in memory."""

    def __init__(self, memory: Memory, ledger: ArchiveLedger) -> None:
        super().__init__(cast(Any, None), cast(HadoopFiles, memory), ledger, 4, 1000)
        self.memory = memory

    def _read_manifest(self) -> ArchiveManifest:
        return manifest_of(self.memory)

    def _merge_files(self, due: list[DataFile]) -> Any:
        return sorted(offset for file in due for offset in self.memory.held[file.path])


class Shorten(ManifestMerge):
    """Merges the commits of a manifest in memory."""

    def __init__(self, memory: Memory, ledger: ArchiveLedger) -> None:
        super().__init__(cast(Any, None), cast(HadoopFiles, memory), ledger)
        self.memory = memory

    def _read_manifest(self) -> ArchiveManifest:
        return manifest_of(self.memory)


def offset_range(first: int, until: int) -> OffsetRange:
    return OffsetRange(TOPIC, 0, "id", first, until, 0, None, None)


def begin_run(memory: Memory, store: Any) -> ArchiveLedger:
    """Begin a run."""
    return ArchiveLedger(cast(HadoopFiles, memory), manifest_of(memory), store)


def archive_topic(memory: Memory, store: Any, ledger: ArchiveLedger | None = None) -> Iterator[None]:
    """Archive the topic from the archive's end, and merge; stop after each commit."""
    ledger = ledger or begin_run(memory, store)
    merge, shorten = Merge(memory, ledger), Shorten(memory, ledger)
    while (end := max((until for intervals in ledger.covered.values() for _, until in intervals), default=0)) < OFFSETS:
        offsets = list(range(end, end + BATCH))
        draft = ledger.draft("batch", "query", end, (offset_range(end, end + BATCH),))
        ledger.commit(cast(Any, offsets), draft)
        yield
        merge()
        shorten()
        yield
