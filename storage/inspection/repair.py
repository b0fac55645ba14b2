"""Repairing a log directory that no broker holds: a plan first, then, on request, its steps.

Everything that a repair takes out of a log is kept beside it, in files that end in `.removed`, which brokers ignore. A
step does what the plan says and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafkacompat.storage.directory.checkpoints import LOG_START_OFFSETS
from kafkacompat.storage.directory.claim import LOCK_FILE
from kafkacompat.storage.directory.log_directory import CLEAN_SHUTDOWN_FILE
from kafkacompat.storage.directory.partition_folders import parse_folder_name
from kafkacompat.storage.files.checkpoints import (
    TEMPORARY_SUFFIX,
    CorruptCheckpointError,
    read_offsets,
    write_checkpoint,
    write_offsets,
)
from kafkacompat.storage.files.filesystem import File, FileLock, Files
from kafkacompat.storage.inspection.directory_check import CHECKPOINTS, CheckTarget
from kafkacompat.storage.inspection.partition_check import CheckedPartition
from kafkacompat.storage.inspection.segment_check import CheckedSegment
from kafkacompat.storage.log.leader_epochs import FILE_NAME as EPOCHS
from kafkacompat.storage.log.leader_epochs import LeaderEpochs
from kafkacompat.storage.producers.recovery import find_open_transactions
from kafkacompat.storage.producers.snapshots import Snapshots
from kafkacompat.storage.producers.transaction_replay import TransactionReplay
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET, REBUILD_INTERVAL_BYTES
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import (
    ALL_SUFFIXES,
    LOG_SUFFIX,
    REMOVED_SUFFIX,
    TXN_INDEX_SUFFIX,
    choose_removed_name,
)
from kafkacompat.storage.segment.shared_files import SegmentCache
from kafkacompat.storage.segment.transaction_index import truncate_aborted, write_aborted
from kafkacompat.storage.segment.walk import Bounds, walk_log_file

_COPY_BYTES = 1 << 20


class RepairStep(NamedTuple):
    """One step of a repair. It removes the offsets `lost` (first, last; -1: to the end), which it keeps in a file."""

    path: str
    action: str
    run: Callable[[], None]
    lost: tuple[int, int] | None = None
    kept_in: str = ""


def lock_directory(files: Files, place: CheckTarget) -> FileLock | None:
    """Lock a log directory against brokers; None outside of one. Raises DirectoryLockedError while a broker runs."""
    path = os.path.join(place.directory, LOCK_FILE)
    return files.lock(path) if place.path is not None or files.exists(path) else None


def plan_repair(
    files: Files, place: CheckTarget, partitions: Sequence[CheckedPartition], truncate: bool
) -> list[RepairStep]:
    """Plan the steps of a repair; damaged logs are cut only if `truncate`."""
    ends: dict[tuple[str, int], int] = {}
    steps: list[RepairStep] = []
    for partition in partitions:
        planned = _PartitionPlan(files, partition, truncate)
        steps += planned.steps()
        name = parse_folder_name(os.path.basename(partition.folder))
        is_cut = planned.cut is not None or (
            partition.is_short and not any(segment.lost for segment in partition.segments)
        )
        if name is not None and is_cut:
            ends[name] = planned.end_offset
    if place.path is None:
        return steps
    marker = os.path.join(place.path, CLEAN_SHUTDOWN_FILE)
    if steps and files.exists(marker):
        action = "remove it, so that the next start recovers the repaired logs"
        steps.insert(0, RepairStep(marker, action, partial(_remove_file, files, marker)))
    return [*steps, *_checkpoint_steps(files, place.path, ends)]


def _remove_file(files: Files, path: str) -> None:
    files.remove(path)
    files.sync_directory(os.path.dirname(path))


def _rename_aside(files: Files, path: str) -> None:
    files.rename(path, path + REMOVED_SUFFIX)
    files.sync_directory(os.path.dirname(path))


def _checkpoint_steps(files: Files, directory: str, ends: Mapping[tuple[str, int], int]) -> Iterator[RepairStep]:
    """Plan to lower checkpoints to the new ends of cut logs, and to set unreadable ones aside."""
    for name in CHECKPOINTS:
        path = os.path.join(directory, name)
        try:
            offsets = read_offsets(files, path)
        except CorruptCheckpointError:
            yield RepairStep(
                path,
                "set it aside; a start does without it",
                partial(_rename_aside, files, path),
                kept_in=path + REMOVED_SUFFIX,
            )
            continue
        lowered = {partition: min(offset, ends.get(partition, offset)) for partition, offset in offsets.items()}
        if lowered != offsets and name != LOG_START_OFFSETS:
            yield RepairStep(
                path, "lower its offsets to the ends of the cut logs", partial(write_offsets, files, path, lowered)
            )


def _bound_segment(file: File, checked: CheckedSegment) -> Bounds:
    return Bounds(file.size(), checked.base_offset + MAX_RELATIVE_OFFSET)


class _PartitionPlan:
    """The steps for one partition, in an order in which a crash between two of them loses nothing."""

    def __init__(self, files: Files, partition: CheckedPartition, truncate: bool) -> None:
        self._files = files
        self._partition = partition
        self._folder = partition.folder
        damaged = next((slot for slot, segment in enumerate(partition.segments) if segment.lost), None)
        self.cut = partition.segments[damaged] if truncate and damaged is not None else None
        self.end_offset = self.cut.lost[0].base_offset if self.cut is not None else partition.end_offset

    def steps(self) -> Iterator[RepairStep]:
        kept = self._partition.segments
        if self.cut is not None:
            yield from self._plan_truncation(self.cut)
            kept = kept[: kept.index(self.cut) + 1]
        for segment in kept:
            if segment.wrong_indexes.keys() & {INDEX_SUFFIX, TIME_INDEX_SUFFIX} or segment is self.cut:
                yield self._plan_index(segment)
        yield from self._plan_transaction_indexes(kept)
        yield from self._plan_snapshots(self.end_offset)
        if self._partition.wrong_epochs or self.cut is not None:
            yield self._plan_epochs(kept, self.end_offset)

    def _plan_truncation(self, cut: CheckedSegment) -> Iterator[RepairStep]:
        """Plan to cut a log; later segments go first, the last one before the others, so that a beginning of the log stays."""
        segments = self._partition.segments
        for segment in reversed(segments[segments.index(cut) + 1 :]):
            kept_in = choose_removed_name(self._files, segment.path)
            lost = (segment.base_offset, segment.end_offset - 1) if segment.end_offset > segment.base_offset else None
            yield RepairStep(
                segment.path, "take it out of the log", partial(self._set_aside, segment, kept_in), lost, kept_in
            )
        position, first_offset = cut.lost[0].position, cut.lost[0].base_offset
        open_ended = cut.damage[-1].last_offset < 0  # the last offset of damage at the end is unknown
        last_offset = -1 if open_ended else max(cut.end_offset - 1, cut.damage[-1].last_offset)
        kept_in = choose_removed_name(self._files, f"{cut.path}.{position}")
        action = f"cut it at byte {position}; new records get offsets from {first_offset} on"
        yield RepairStep(
            cut.path, action, lambda: self._cut(cut, position, kept_in), (first_offset, last_offset), kept_in
        )

    def _set_aside(self, segment: CheckedSegment, kept_in: str) -> None:
        stem, ending = segment.path.removesuffix(LOG_SUFFIX), kept_in.removeprefix(segment.path)
        for suffix in ALL_SUFFIXES:
            if self._files.exists(stem + suffix):
                self._files.rename(stem + suffix, stem + suffix + ending)
        self._files.sync_directory(self._folder)

    def _cut(self, segment: CheckedSegment, position: int, kept_in: str) -> None:
        unfinished = kept_in + TEMPORARY_SUFFIX
        source, kept = self._files.open(segment.path), self._files.open(unfinished, create=True)
        try:
            kept.truncate(0)
            for start in range(position, segment.size_bytes, _COPY_BYTES):
                data = source.pread(min(_COPY_BYTES, segment.size_bytes - start), start)
                kept.append((data,), len(data))
            kept.sync()
            self._files.rename(unfinished, kept_in)
            self._files.sync_directory(self._folder)
            source.truncate(position)
            source.sync()
        finally:
            source.close()
            kept.close()

    def _plan_index(self, segment: CheckedSegment) -> RepairStep:
        path = segment.path.removesuffix(LOG_SUFFIX) + INDEX_SUFFIX
        return RepairStep(path, "rebuild it and the time index from the log", lambda: self._build_indexes(segment))

    def _build_indexes(self, checked: CheckedSegment) -> None:
        segment = Segment(self._files, self._folder, checked.base_offset, SegmentCache())
        segment.start_empty()
        file = self._files.open(checked.path)
        try:
            for stretch in walk_log_file(file, _bound_segment(file, checked), checked.base_offset):
                if stretch.problem:
                    segment.size_bytes = stretch.end
                else:
                    segment.index_batch(
                        stretch.size_bytes, stretch.last_offset, stretch.max_timestamp, REBUILD_INTERVAL_BYTES
                    )
        finally:
            file.close()
        segment.finish_time_index()
        segment.write_indexes()
        self._files.sync_directory(self._folder)

    def _plan_transaction_indexes(self, kept: Sequence[CheckedSegment]) -> Iterator[RepairStep]:
        for slot, segment in enumerate(kept):
            path = segment.path.removesuffix(LOG_SUFFIX) + TXN_INDEX_SUFFIX
            if TXN_INDEX_SUFFIX in segment.wrong_indexes:
                action = "rebuild it from the transaction markers"
                yield RepairStep(path, action, partial(self._build_transaction_index, path, segment, kept[:slot]))
            elif segment is self.cut and self._files.exists(path):
                action = "remove the transactions that ended after the cut"
                yield RepairStep(path, action, partial(truncate_aborted, self._files, path, self.end_offset))

    def _build_transaction_index(self, path: str, checked: CheckedSegment, earlier: Sequence[CheckedSegment]) -> None:
        loaded = [Segment.load(self._files, self._folder, segment.base_offset, SegmentCache()) for segment in earlier]
        open_before = find_open_transactions(self._files, self._folder, loaded, checked.base_offset)
        replay = TransactionReplay(open_before)
        file = self._files.open(checked.path)
        try:
            for stretch in walk_log_file(file, _bound_segment(file, checked), checked.base_offset):
                if stretch.header is not None and not stretch.problem:
                    replay.follow(file, stretch.position, stretch.header)
        finally:
            file.close()
        write_aborted(self._files, path, replay.aborted)

    def _plan_snapshots(self, end_offset: int) -> Iterator[RepairStep]:
        snapshots = Snapshots(self._files, self._folder)
        for offset in snapshots.offsets():
            if offset in self._partition.bad_snapshots or offset > end_offset:
                path = snapshots.path(offset)
                action = "set it aside; a start rebuilds its contents from the batches"
                yield RepairStep(path, action, partial(_rename_aside, self._files, path), kept_in=path + REMOVED_SUFFIX)

    def _plan_epochs(self, segments: Sequence[CheckedSegment], end_offset: int) -> RepairStep:
        path = os.path.join(self._folder, EPOCHS)
        return RepairStep(path, "rebuild it from the batches", lambda: self._write_epochs(segments, end_offset))

    def _write_epochs(self, segments: Sequence[CheckedSegment], end_offset: int) -> None:
        epochs = LeaderEpochs(self._files, self._folder)
        for segment in segments:
            for run in segment.epochs:
                if not run.doubtful and run.epoch > epochs.latest and run.first_offset < end_offset:
                    epochs.assign(run.epoch, run.first_offset)
        path = os.path.join(self._folder, EPOCHS)
        write_checkpoint(self._files, path, (f"{entry.epoch} {entry.start_offset}" for entry in epochs.entries))
