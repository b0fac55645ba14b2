"""Checking a partition's folder: its segments and its other files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkacompat.storage.files.checkpoints import TEMPORARY_SUFFIX, CorruptCheckpointError
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.inspection.epoch_check import check_epochs
from kafkacompat.storage.inspection.findings import Finding, ReportFinding, ReportProgress
from kafkacompat.storage.inspection.segment_check import CheckedSegment, check_segment, report_segment
from kafkacompat.storage.log.partition_metadata import read_partition_metadata
from kafkacompat.storage.producers.snapshots import SNAPSHOT_SUFFIX, CorruptSnapshotError, Snapshots
from kafkacompat.storage.producers.transaction_replay import TransactionReplay
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.segment_files import (
    ALL_SUFFIXES,
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    list_segment_bases,
    log_file_path,
)
from kafkacompat.storage.segment.walk import LARGEST_OFFSET


class PartitionCircumstances(NamedTuple):
    """What a log directory says of a partition, and whether its broker runs (`live`).

    Everything before `synced_to` is on the disk, with its indexes; after a clean shutdown that is LARGEST_OFFSET.
    """

    synced_to: int = LARGEST_OFFSET
    log_start_offset: int = 0
    high_watermark: int = 0
    compacted: bool = False
    live: bool = False

    @property
    def clean(self) -> bool:
        """Whether the log was closed by a clean shutdown."""
        return self.synced_to == LARGEST_OFFSET


@dataclass(slots=True)
class CheckedPartition:
    """The result of checking a partition's folder."""

    folder: str
    segments: list[CheckedSegment] = field(default_factory=list)
    bad_snapshots: list[int] = field(default_factory=list)
    wrong_epochs: bool = False
    is_short: bool = False
    """Whether the log ends before an offset of a checkpoint."""

    @property
    def end_offset(self) -> int:
        """The offset after the last sound batch."""
        return self.segments[-1].end_offset if self.segments else 0


_LEFTOVERS = {
    DELETED_SUFFIX: "it was deleted; the next start removes it",
    CLEANED_SUFFIX: "compaction did not complete it; the next start removes it",
    SWAP_SUFFIX: "it is the result of a compaction; the next start completes the swap",
    TEMPORARY_SUFFIX: "it is incomplete; the next start removes it",
}


def check_partition(
    files: Files, folder: str, circumstances: PartitionCircumstances, report: ReportFinding, progress: ReportProgress
) -> CheckedPartition:
    """Check everything in a partition's folder. Raises OSError."""
    checked = CheckedPartition(folder)
    bases = list_segment_bases(files, folder)
    segments, transactions = [], TransactionReplay({})
    for base, following in zip(bases, [*bases[1:], None], strict=False):
        segment = _check_segment(files, folder, base, following, circumstances, transactions, progress)
        segments.append(segment)
        if segment is not None:
            checked.segments.append(segment)
            segment.synced_to = circumstances.synced_to
            report_segment(segment, report)
    _report_gaps(segments, circumstances, report)
    _check_offsets(checked, circumstances, report)
    checked.wrong_epochs = check_epochs(
        files, folder, checked.segments, circumstances.log_start_offset, _written_to(checked, circumstances), report
    )
    _check_snapshots(files, checked, circumstances, report)
    _check_metadata(files, folder, report)
    _report_leftovers(files, folder, set(bases), circumstances, report)
    return checked


def _check_segment(
    files: Files,
    folder: str,
    base: int,
    following: int | None,
    circumstances: PartitionCircumstances,
    transactions: TransactionReplay,
    progress: ReportProgress,
) -> CheckedSegment | None:
    """Check one segment; None if a running broker has removed or replaced it meanwhile."""
    path = log_file_path(folder, base)
    settled = circumstances.clean if following is None else following <= circumstances.synced_to
    try:
        before = files.size(path), files.modified_ms(path)
        checked = check_segment(
            files,
            folder,
            base,
            base + MAX_RELATIVE_OFFSET if following is None else following - 1,
            with_indexes=settled,
            complete=following is not None,
            transactions=transactions,
            progress=progress,
        )
        changed = before != (files.size(path), files.modified_ms(path))
    except FileNotFoundError:
        if circumstances.live:
            return None
        raise
    if circumstances.live and following is not None and changed:
        return None
    _extend_damage(checked, following)
    if circumstances.live and following is None:
        # The broker may be writing the last batch.
        checked.damage = [
            stretch for stretch in checked.damage if stretch.end < checked.size_bytes or not stretch.is_cut_off
        ]
    return checked


def _extend_damage(checked: CheckedSegment, following: int | None) -> None:
    """Extend damage at the end of a segment up to the next segment."""
    if following is None or not checked.damage:
        return
    if checked.damage[-1].end == checked.size_bytes:
        checked.damage[-1] = checked.damage[-1]._replace(last_offset=following - 1)
        checked.end_offset = following


def _report_gaps(
    segments: Sequence[CheckedSegment | None], circumstances: PartitionCircumstances, report: ReportFinding
) -> None:
    """Report offsets without a batch, unless compaction removed them, or retention removed a segment (None)."""
    if circumstances.compacted or any(segment is not None and segment.compacted for segment in segments):
        return
    end_offset = None
    for segment in segments:
        if segment is None:
            end_offset = None
            continue
        missing = list(segment.gaps)
        if end_offset is not None and end_offset < segment.base_offset:
            missing.insert(0, (end_offset, segment.base_offset - 1))
        for first, last in missing:
            fault = "no batch holds these offsets, though the log shows no sign of a compaction"
            report(Finding(segment.path, fault, first_offset=first, last_offset=last))
        end_offset = segment.end_offset


def _check_offsets(checked: CheckedPartition, circumstances: PartitionCircumstances, report: ReportFinding) -> None:
    """Report checkpoints with offsets after the log's end."""
    end_offset = checked.end_offset
    checkpoints = [("log start offset", circumstances.log_start_offset, False)]
    if circumstances.clean:
        checkpoints.append(("high watermark", circumstances.high_watermark, True))
    else:
        checkpoints.append(("recovery point", circumstances.synced_to, False))
    for name, offset, is_moving in checkpoints:
        if offset > end_offset and not (circumstances.live and is_moving):
            fault = f"the checkpoint of its {name} says {offset}, but the log ends at {end_offset}"
            report(Finding(checked.folder, fault, first_offset=end_offset, last_offset=offset - 1))
            checked.is_short = True


def _written_to(checked: CheckedPartition, circumstances: PartitionCircumstances) -> int:
    """Return the offset before which the leader epoch checkpoint is complete; a roll and a clean shutdown write it."""
    if circumstances.clean or not checked.segments:
        return circumstances.synced_to
    return min(circumstances.synced_to, checked.segments[-1].base_offset)


def _check_snapshots(
    files: Files, checked: CheckedPartition, circumstances: PartitionCircumstances, report: ReportFinding
) -> None:
    snapshots = Snapshots(files, checked.folder)
    for offset in snapshots.offsets():
        path = os.path.join(checked.folder, f"{offset:020d}{SNAPSHOT_SUFFIX}")
        try:
            snapshots.read(offset)
            fault = (
                f"it is of offset {offset}, but the log ends at {checked.end_offset}"
                if offset > checked.end_offset
                else ""
            )
        except FileNotFoundError:
            continue
        except CorruptSnapshotError as error:
            fault = str(error)
        if fault and not (circumstances.live and offset > checked.end_offset):
            checked.bad_snapshots.append(offset)
            report(Finding(path, fault))


def _check_metadata(files: Files, folder: str, report: ReportFinding) -> None:
    try:
        read_partition_metadata(files, folder)
    except CorruptCheckpointError as error:
        report(Finding(folder, str(error)))


def _report_leftovers(
    files: Files, folder: str, bases: set[int], circumstances: PartitionCircumstances, report: ReportFinding
) -> None:
    for name in files.list(folder) if not circumstances.live else ():
        ending = next((ending for ending in _LEFTOVERS if name.endswith(ending)), None)
        stem = name.split(".")[0]
        if ending is not None:
            report(Finding(os.path.join(folder, name), _LEFTOVERS[ending], note=True))
        elif name.endswith(ALL_SUFFIXES) and stem.isdigit() and int(stem) not in bases:
            fault = "it belongs to no segment; the next start removes it"
            report(Finding(os.path.join(folder, name), fault, note=True))
