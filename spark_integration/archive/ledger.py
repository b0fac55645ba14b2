"""The ledger of an archive: it writes the manifest, in which each commit is complete and has a number of its own.

A commit begins as a draft in ``staging/N-RUN``. Then its records are published, and it is renamed into
``manifest/N.json``; from then on it counts. If a run is killed, the next run undoes or finishes the commits that it
left in ``staging``.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame

from spark_integration.errors import PipelineError
from spark_integration.state.files import HadoopFiles
from spark_integration.state.manifest import (
    COMMITS,
    FOLDER,
    ArchiveCommit,
    ArchiveManifest,
    DataFile,
    OffsetRange,
    covered_intervals,
    known_topic_ids,
    parse_commit,
)
from spark_integration.topics.offsets import Interval, TopicPartition, join_intervals, subtract_intervals

STAGING = f"{FOLDER}/staging"


class ArchiveStore(Protocol):
    """Where the records are: a folder of Parquet, a Delta table or an Iceberg table."""

    def create(self) -> None:
        """Create the store if it does not exist."""

    def stage(self, frame: DataFrame, commit: ArchiveCommit) -> ArchiveCommit:
        """Write what readers do not see yet; return the commit with everything that is known of it by then."""

    def publish(self, frame: DataFrame, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        """Let readers see the records, of the commit's files those that are *new*; return the commit as it is kept."""

    def has_published(self, commit: ArchiveCommit) -> bool:
        """Return whether a log of the store's own shows that this very commit was published."""

    def recover(self, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit | None:
        """Withdraw records that were published without a commit, or return the commit if they have to stay."""

    def finish(self, commit: ArchiveCommit) -> None:
        """Delete what the commit, which counts by now, has replaced."""


class ArchiveLedger:
    """The contents of an archive, and the only way to add to it."""

    def __init__(self, files: HadoopFiles, manifest: ArchiveManifest, store: ArchiveStore) -> None:
        self._files, self._store = files, store
        self.run_id = str(uuid.uuid4())
        self._load(manifest)
        self._recover()

    def _load(self, manifest: ArchiveManifest) -> None:
        self.number = manifest.number
        self.commits = len(manifest.commits)
        self._last_run = manifest.commits[-1].run_id if manifest.commits else ""
        self.covered: dict[TopicPartition, list[Interval]] = dict(manifest.covered)
        self.topic_ids = manifest.topic_ids
        self.queries = manifest.queries
        self.files: dict[str, DataFile] = {file.path: file for file in manifest.files}
        self.batches_since_merge = sum(commit.kind == "batch" for commit in manifest.commits)

    def draft(
        self,
        kind: str,
        query_id: str | None = None,
        batch_id: int | None = None,
        ranges: tuple[OffsetRange, ...] = (),
    ) -> ArchiveCommit:
        """Draft the next commit; raises PipelineError if another run has written since this one began."""
        draft = ArchiveCommit(self.number + 1, kind, self.run_id, int(time.time() * 1000), query_id, batch_id, ranges)
        if self._is_lost(draft):
            raise self._build_overtaken_error()
        return draft

    def commit(
        self, frame: DataFrame, draft: ArchiveCommit, check: Callable[[ArchiveCommit], None] = lambda _: None
    ) -> ArchiveCommit:
        """Add the records of *frame*; raises PipelineError if another run has written since this one began.

        *check* is called with the staged commit, and again with the published one, since tables are written only then.
        It raises an exception to stop the commit.
        """
        folder, staged = staging_folder(draft), draft
        try:
            staged = self._store.stage(frame, draft)
            check(staged)
            self._files.write_new(f"{folder}/draft.json", staged.as_json())
            if self._is_lost(draft):
                raise FileExistsError(commit_path(draft))
            published = self._store.publish(frame, staged, self._list_new_files(staged))
            check(published)
            return self._close(published)
        except Exception as problem:
            # Another run may have taken this one for dead, and removed what it was going to publish.
            if not self._is_lost(draft):
                raise
            self._store.recover(staged, self._list_new_files(staged))
            self._files.remove(folder)
            raise self._build_overtaken_error() from problem

    def restate(self, draft: ArchiveCommit) -> ArchiveCommit:
        """Add a commit without records; raises PipelineError if another run has written since this one began."""
        try:
            return self._close(draft)
        except FileExistsError as problem:
            self._files.remove(staging_folder(draft))
            raise self._build_overtaken_error() from problem

    def _is_lost(self, draft: ArchiveCommit) -> bool:
        """Return whether another run wrote a commit of this number or the one before, or removed both."""
        if self._files.exists(commit_path(draft)):
            return not self._is_committed(draft)
        if draft.number > 1:
            return not self._is_committed(replace(draft, number=draft.number - 1, run_id=self._last_run))
        return bool(self._files.names(COMMITS))

    def _close(self, done: ArchiveCommit) -> ArchiveCommit:
        folder = staging_folder(done)
        self._files.write_new(f"{folder}/done.json", done.as_json())
        self._files.rename(f"{folder}/done.json", commit_path(done))
        # On local disks two renames at the same moment may both succeed.
        if not self._is_committed(done):
            raise FileExistsError(commit_path(done))
        self._store.finish(done)
        self._files.remove(folder)
        self._apply(done)
        return done

    def _apply(self, done: ArchiveCommit) -> None:
        self.number, self._last_run = done.number, done.run_id
        self.commits = 1 if done.kind == "compact" else self.commits + 1
        self.batches_since_merge = 0 if done.kind == "compact" else self.batches_since_merge + (done.kind == "batch")
        self.topic_ids.update(known_topic_ids(done.ranges))
        self.queries |= {done.query_id} if done.query_id else set()
        for path in done.removed:
            self.files.pop(path, None)
        self.files.update({file.path: file for file in done.files})
        for partition, intervals in covered_intervals(done.ranges).items():
            self.covered[partition] = join_intervals([*self.covered.get(partition, []), *intervals])

    def _build_overtaken_error(self) -> PipelineError:
        return PipelineError(
            f"another run writes to the archive in {self._files.uri}, or has written since this one began: "
            "let one run at a time write to it"
        )

    def _recover(self) -> None:
        """Undo or finish the commits of killed runs, and first keep a run that is still alive from committing."""
        if not self._files.names(STAGING):
            return
        self.restate(self.draft("open"))
        left = {
            folder: self._read_draft(folder) for folder in (f"{STAGING}/{name}" for name in self._files.names(STAGING))
        }
        # If two killed runs had read the same offsets, the records alone do not show whose they are. So the commits
        # that the store's log knows come first.
        for folder, draft in sorted(
            left.items(), key=lambda entry: entry[1] is None or not self._store.has_published(entry[1])
        ):
            if draft is not None:
                self._settle_draft(draft)
            self._files.remove(folder)

    def _read_draft(self, folder: str) -> ArchiveCommit | None:
        name = f"{folder}/draft.json"
        return parse_commit(self._files.read(name)) if self._files.exists(name) else None

    def _settle_draft(self, left: ArchiveCommit) -> None:
        if self._is_committed(left):
            self._store.finish(left)
            return
        whole = self._store.recover(
            replace(left, ranges=self._list_missing_ranges(left.ranges)), self._list_new_files(left)
        )
        if whole is not None:
            self._close(replace(whole, number=self.number + 1))

    def _list_new_files(self, commit: ArchiveCommit) -> list[DataFile]:
        return [file for file in commit.files if file.path not in self.files]

    def _list_missing_ranges(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        return tuple(
            read._replace(from_offset=first, until_offset=until)
            for read in ranges
            for first, until in subtract_intervals(
                (read.from_offset, read.until_offset), self.covered.get(read.topic_partition, [])
            )
        )

    def _is_committed(self, left: ArchiveCommit) -> bool:
        name = commit_path(left)
        return self._files.exists(name) and json.loads(self._files.read(name))["run_id"] == left.run_id


def commit_path(commit: ArchiveCommit) -> str:
    """Return the path of a commit; the order of paths is that of the numbers."""
    return f"{COMMITS}/{commit.number:020d}.json"


def staging_folder(commit: ArchiveCommit) -> str:
    """Return the folder of an unfinished commit, which no other run uses even if it wants the same number."""
    return f"{STAGING}/{commit.number:020d}-{commit.run_id}"
