"""Writes the manifest of an archive: each commit is there as a whole or not at all, and no two have one number.

A commit first lies in ``staging/N-RUN`` as what is going to be done, then it is done, and then it is renamed into
``manifest/N.json``, from where on it counts. What a killed run left in ``staging_folder`` is undone, or finished, by the next.
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
    """Where the records are: a folder of Parquet, a Delta or an Iceberg table."""

    def create(self) -> None:
        """Begin, unless that is done."""

    def stage(self, frame: DataFrame, commit: ArchiveCommit) -> ArchiveCommit:
        """Write what needs not be seen yet; return the commit with what is known of it by then."""

    def publish(self, frame: DataFrame, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit:
        """Let readers see it, of its files those that are *new*; return the commit as it is to be kept."""

    def has_published(self, commit: ArchiveCommit) -> bool:
        """Return whether a log of its own tells that this very commit was published."""

    def recover(self, commit: ArchiveCommit, new: Sequence[DataFile]) -> ArchiveCommit | None:
        """Take back what was published without a commit, or return the commit if its records have to stay."""

    def finish(self, commit: ArchiveCommit) -> None:
        """Delete what the commit, which counts by now, has replaced."""


class ArchiveLedger:
    """What is in an archive by now, and the one way to add to it."""

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
        self.files: dict[str, DataFile] = {one.path: one for one in manifest.files}
        self.batches_since_merge = sum(one.kind == "batch" for one in manifest.commits)

    def draft(
        self,
        kind: str,
        query_id: str | None = None,
        batch_id: int | None = None,
        ranges: tuple[OffsetRange, ...] = (),
    ) -> ArchiveCommit:
        """Begin the next commit; raises PipelineError where another run has written meanwhile."""
        draft = ArchiveCommit(self.number + 1, kind, self.run_id, int(time.time() * 1000), query_id, batch_id, ranges)
        if self._is_lost(draft):
            raise self._overtaken_error()
        return draft

    def commit(
        self, frame: DataFrame, draft: ArchiveCommit, check: Callable[[ArchiveCommit], None] = lambda _: None
    ) -> ArchiveCommit:
        """Add what *frame* holds as *draft* says; raises PipelineError where another run has written meanwhile.

        *check* looks at what is going to be done, and raises where it must not be; it is called once more when it is
        done, as tables are written only then.
        """
        folder, staged = staging_folder(draft), draft
        try:
            staged = self._store.stage(frame, draft)
            check(staged)
            self._files.write_new(f"{folder}/draft.json", staged.as_json())
            if self._is_lost(draft):
                raise FileExistsError(commit_path(draft))
            published = self._store.publish(frame, staged, self._new_files(staged))
            check(published)
            return self._close(published)
        except Exception as problem:
            # A run that took this one for dead may have removed what it was going to publish.
            if not self._is_lost(draft):
                raise
            self._store.recover(staged, self._new_files(staged))
            self._files.remove(folder)
            raise self._overtaken_error() from problem

    def restate(self, draft: ArchiveCommit) -> ArchiveCommit:
        """Add a commit that brings no records; raises PipelineError where another run has written meanwhile."""
        try:
            return self._close(draft)
        except FileExistsError as problem:
            self._files.remove(staging_folder(draft))
            raise self._overtaken_error() from problem

    def _is_lost(self, draft: ArchiveCommit) -> bool:
        """Return whether another run has this number or the one before, or has gone so far that that is forgotten."""
        if self._files.exists(commit_path(draft)):
            return not self._is_committed(draft)
        if draft.number > 1:
            return not self._is_committed(replace(draft, number=draft.number - 1, run_id=self._last_run))
        return bool(self._files.names(COMMITS))

    def _close(self, done: ArchiveCommit) -> ArchiveCommit:
        folder = staging_folder(done)
        self._files.write_new(f"{folder}/done.json", done.as_json())
        self._files.rename(f"{folder}/done.json", commit_path(done))
        # On local disks two renames at the same moment may both go well.
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
        for one in done.removed:
            self.files.pop(one, None)
        self.files.update({one.path: one for one in done.files})
        for partition, intervals in covered_intervals(done.ranges).items():
            self.covered[partition] = join_intervals([*self.covered.get(partition, []), *intervals])

    def _overtaken_error(self) -> PipelineError:
        return PipelineError(
            f"another run writes to the archive in {self._files.uri}, or has written since this one began: "
            "let one run at a time write to it"
        )

    def _recover(self) -> None:
        """Undo or finish what a killed run left; before that, keep it from committing should it still be alive."""
        if not self._files.names(STAGING):
            return
        self.restate(self.draft("open"))
        left = {
            folder: self._read_draft(folder) for folder in (f"{STAGING}/{name}" for name in self._files.names(STAGING))
        }
        # Where two were killed that had read the same, records alone do not tell whose they are: the sure ones first.
        for folder, draft in sorted(
            left.items(), key=lambda one: one[1] is None or not self._store.has_published(one[1])
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
        whole = self._store.recover(replace(left, ranges=self._missing_ranges(left.ranges)), self._new_files(left))
        if whole is not None:
            self._close(replace(whole, number=self.number + 1))

    def _new_files(self, commit: ArchiveCommit) -> list[DataFile]:
        return [one for one in commit.files if one.path not in self.files]

    def _missing_ranges(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        return tuple(
            one._replace(from_offset=first, until_offset=until)
            for one in ranges
            for first, until in subtract_intervals(
                (one.from_offset, one.until_offset), self.covered.get(one.topic_partition, [])
            )
        )

    def _is_committed(self, left: ArchiveCommit) -> bool:
        name = commit_path(left)
        return self._files.exists(name) and json.loads(self._files.read(name))["run_id"] == left.run_id


def commit_path(commit: ArchiveCommit) -> str:
    """Return where a commit is kept; names are in the order of the numbers."""
    return f"{COMMITS}/{commit.number:020d}.json"


def staging_folder(commit: ArchiveCommit) -> str:
    """Return the folder of a commit that is not finished; no other run's, though it may want the same number."""
    return f"{STAGING}/{commit.number:020d}-{commit.run_id}"
