"""Checking one segment: every batch of its log file, and its indexes against the batches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.inspection.findings import Finding, ReportFinding, ReportProgress
from kafkacompat.storage.inspection.index_check import (
    IndexCheck,
    OffsetIndexCheck,
    TimeIndexCheck,
    TransactionIndexCheck,
)
from kafkacompat.storage.producers.transaction_replay import TransactionReplay
from kafkacompat.storage.segment.index_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkacompat.storage.segment.segment_files import LOG_SUFFIX, TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.walk import LARGEST_OFFSET, Bounds, Stretch, walk_log_file
from kafkacompat.wire.primitives import MalformedError

PROGRESS_BYTES = 1 << 20
MOST_GAPS = 1000
"""Gaps that are reported of one segment; a compacted one may have a gap after every batch."""

_CHECKS: Mapping[str, type[IndexCheck]] = {
    INDEX_SUFFIX: OffsetIndexCheck,
    TIME_INDEX_SUFFIX: TimeIndexCheck,
    TXN_INDEX_SUFFIX: TransactionIndexCheck,
}


@dataclass(slots=True)
class EpochRun:
    """Consecutive batches with the same leader epoch; the first one begins at `position`.

    `doubtful`: the epoch in the headers is most likely wrong.
    """

    epoch: int
    position: int
    first_offset: int
    last_offset: int
    batches: int = 1
    doubtful: bool = False


@dataclass(slots=True)
class CheckedSegment:
    """The result of checking a segment; `end_offset` is the offset after its last sound batch."""

    path: str
    base_offset: int
    size_bytes: int
    end_offset: int
    damage: list[Stretch] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """(first, last) offsets without a batch, though nothing is damaged there; at most MOST_GAPS."""
    epochs: list[EpochRun] = field(default_factory=list)
    compacted: bool = False
    """Whether a batch lacks records in the middle, which only compaction removes."""
    synced_to: int = LARGEST_OFFSET
    """Everything before this offset was synced."""
    wrong_indexes: dict[str, str] = field(default_factory=dict)
    """Suffix -> what is wrong with that index file, which may be missing."""

    def is_torn(self, stretch: Stretch) -> bool:
        """Return whether damage is the torn end of a log after a crash, which no sync had reached."""
        return stretch.end == self.size_bytes and stretch.base_offset >= self.synced_to

    @property
    def lost(self) -> list[Stretch]:
        """The damage that no crash explains."""
        return [stretch for stretch in self.damage if not self.is_torn(stretch)]

    def add_stretch(self, stretch: Stretch) -> None:
        """Record the next stretch."""
        if stretch.problem:
            self.damage.append(stretch)
            if stretch.last_offset >= 0:
                self.end_offset = stretch.last_offset + 1
            return
        header = stretch.header
        if header is not None:
            if header.base_offset > self.end_offset and len(self.gaps) < MOST_GAPS:
                self.gaps.append((self.end_offset, header.base_offset - 1))
            self.compacted = self.compacted or header.record_count <= header.last_offset_delta
            self._take_epoch(header.partition_leader_epoch, stretch)
        self.end_offset = stretch.last_offset + 1

    def _take_epoch(self, epoch: int, stretch: Stretch) -> None:
        if self.epochs and self.epochs[-1].epoch == epoch:
            self.epochs[-1].last_offset = stretch.last_offset
            self.epochs[-1].batches += 1
        else:
            self.epochs.append(EpochRun(epoch, stretch.position, stretch.base_offset, stretch.last_offset))


def check_segment(
    files: Files,
    folder: str,
    base_offset: int,
    last_offset: int,
    *,
    with_indexes: bool,
    complete: bool,
    transactions: TransactionReplay,
    progress: ReportProgress,
) -> CheckedSegment:
    """Check a segment whose offsets go up to `last_offset` at most; `complete`: it is sealed. Raises OSError.

    `transactions` has followed the segments before it.
    """
    stem = os.path.join(folder, f"{base_offset:020d}")
    file = files.open(stem + LOG_SUFFIX)
    try:
        size_bytes = file.size()
        checked = CheckedSegment(stem + LOG_SUFFIX, base_offset, size_bytes, base_offset)
        checks = _index_checks(files, stem, checked) if with_indexes else {}
        aborted_before, reported = len(transactions.aborted), 0
        for stretch in walk_log_file(file, Bounds(size_bytes, last_offset), base_offset):
            checked.add_stretch(stretch)
            if stretch.header is not None and not stretch.problem:
                with suppress(MalformedError):
                    transactions.follow(file, stretch.position, stretch.header)
            for check in checks.values():
                check.compare(stretch)
            if stretch.end - reported >= PROGRESS_BYTES:
                progress(stretch.end - reported)
                reported = stretch.end
        progress(size_bytes - reported)
    finally:
        file.close()
    for suffix, check in checks.items():
        check.compare_end(complete)
        if isinstance(check, TransactionIndexCheck):
            check.compare_aborted(transactions.aborted[aborted_before:])
        if check.problem:
            checked.wrong_indexes[suffix] = check.problem
    return checked


def _index_checks(files: Files, stem: str, checked: CheckedSegment) -> dict[str, IndexCheck]:
    checks: dict[str, IndexCheck] = {}
    for suffix, make in _CHECKS.items():
        if files.exists(stem + suffix):
            checks[suffix] = make(files.read(stem + suffix), checked.base_offset)
        elif suffix == TXN_INDEX_SUFFIX:
            checks[suffix] = make(b"", checked.base_offset)  # most segments have none
        else:
            checked.wrong_indexes[suffix] = "it is missing"
    return checks


def report_segment(checked: CheckedSegment, report: ReportFinding) -> None:
    """Report the faults of a segment."""
    for stretch in checked.damage:
        torn = checked.is_torn(stretch)
        fault = f"{stretch.size_bytes} bytes are no sound batch: {stretch.problem}"
        if torn:
            fault += "; no sync had reached them, and the next start cuts them off"
        report(Finding(checked.path, fault, torn, stretch.position, stretch.base_offset, stretch.last_offset))
    stem = checked.path.removesuffix(LOG_SUFFIX)
    for suffix, problem in checked.wrong_indexes.items():
        report(Finding(stem + suffix, problem))
