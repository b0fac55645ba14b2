"""Comparing a segment's index files with its batches during a walk."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence

from kafkacompat.storage.inspection.index_rows import OFFSET_ENTRY, TIME_ENTRY
from kafkacompat.storage.segment import transaction_index
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.storage.segment.walk import Stretch


class IndexCheck(ABC):
    """The check of one index file; `problem` is the first fault, empty without one."""

    ENTRY: struct.Struct

    def __init__(self, data: bytes, base_offset: int) -> None:
        self.problem = ""
        self._base_offset = base_offset
        whole = len(data) - len(data) % self.ENTRY.size
        self._entries = self._make_absolute(list(self.ENTRY.iter_unpack(data[:whole])))
        self._next = 0
        if whole != len(data):
            self._note(f"its {len(data)} bytes are no whole number of entries of {self.ENTRY.size} bytes")

    @abstractmethod
    def _make_absolute(self, entries: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the entries with absolute instead of relative offsets."""

    @abstractmethod
    def compare(self, stretch: Stretch) -> None:
        """Compare with the next stretch of the log file."""

    def compare_end(self, complete: bool) -> None:
        """Finish after the last stretch; `complete`: the segment is sealed, so the index should have all entries."""
        if self._next < len(self._entries) and not self.problem:
            self._note(f"its entry {self._next} points after the end of the log")

    def _note(self, problem: str) -> None:
        self.problem = self.problem or problem


class OffsetIndexCheck(IndexCheck):
    """Checks that every entry has the last offset of a batch, or the first one as in Kafka 0.11, and its position."""

    ENTRY = OFFSET_ENTRY

    def __init__(self, data: bytes, base_offset: int) -> None:
        super().__init__(data, base_offset)
        self._end_offset = base_offset
        self._firsts = self._lasts = 0

    def _make_absolute(self, entries: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(self._base_offset + offset, position) for offset, position in entries]

    def compare(self, stretch: Stretch) -> None:
        """See IndexCheck."""
        while self._next < len(self._entries) and self._entries[self._next][1] < stretch.end:
            offset, position = self._entries[self._next]
            if not stretch.problem and not (position == stretch.position and self._is_entry_of(offset, stretch)):
                self._note(f"the entry of offset {offset} points at {position}, where no batch of it begins")
            self._next += 1
        self._end_offset = stretch.last_offset + 1

    def _is_entry_of(self, offset: int, stretch: Stretch) -> bool:
        if stretch.header is None:  # the messages of a wrapper are not unpacked
            return self._end_offset <= offset <= stretch.last_offset
        if stretch.base_offset != stretch.last_offset:
            self._firsts += offset == stretch.base_offset
            self._lasts += offset == stretch.last_offset
        return offset in (stretch.base_offset, stretch.last_offset) and not (self._firsts and self._lasts)


class TimeIndexCheck(IndexCheck):
    """Checks that every entry has the largest timestamp so far, and the last offset of the first batch that has it."""

    ENTRY = TIME_ENTRY

    def __init__(self, data: bytes, base_offset: int) -> None:
        super().__init__(data, base_offset)
        self._latest = (-1, base_offset)
        self._damaged = False

    def _make_absolute(self, entries: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(timestamp, self._base_offset + offset) for timestamp, offset in entries]

    def compare(self, stretch: Stretch) -> None:
        """See IndexCheck."""
        if stretch.problem:
            self._damaged = True
        elif stretch.max_timestamp > self._latest[0] and not (stretch.header and not stretch.header.record_count):
            # Kafka indexes the timestamp of a batch that compaction emptied; this broker does not.
            self._latest = stretch.max_timestamp, stretch.last_offset
        while self._next < len(self._entries) and self._entries[self._next][1] <= stretch.last_offset:
            self._compare(self._entries[self._next], stretch)
            self._next += 1

    def _compare(self, entry: tuple[int, ...], stretch: Stretch) -> None:
        timestamp, offset = entry
        before = self._entries[self._next - 1][0] if self._next else -1
        # In a compressed message set, the offset is that of the message itself.
        placed = offset == stretch.last_offset or stretch.header is None
        if timestamp <= before:
            self._note(f"the entry of timestamp {timestamp} follows that of {before}")
        elif not stretch.problem and not (placed and timestamp == stretch.max_timestamp >= self._latest[0]):
            self._note(f"the entry of timestamp {timestamp} names offset {offset}, where the log has another one")

    def compare_end(self, complete: bool) -> None:
        """See IndexCheck."""
        super().compare_end(complete)
        last = self._entries[-1][0] if self._entries else -1
        if complete and not self._damaged and last < self._latest[0]:
            self._note(f"it ends with timestamp {last}, but the segment's largest is {self._latest[0]}")


class TransactionIndexCheck(IndexCheck):
    """Checks that every entry has a producer and the offset of its abort marker."""

    ENTRY = transaction_index.ABORTED_ENTRY

    def _make_absolute(self, entries: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return list(entries)

    def compare(self, stretch: Stretch) -> None:
        """See IndexCheck."""
        while self._next < len(self._entries) and self._entries[self._next][3] <= stretch.last_offset:
            version, producer_id, first_offset, last_offset, stable_offset = self._entries[self._next]
            stable_before = self._entries[self._next - 1][4] if self._next else 0
            header = stretch.header
            marker = header is not None and header.is_control and header.producer_id == producer_id
            ordered = version == 0 and first_offset <= last_offset == stretch.last_offset
            if not stretch.problem and not (marker and ordered):
                self._note(f"the entry of offset {last_offset} names no marker of producer {producer_id}")
            elif not stable_before <= stable_offset <= last_offset + 1:
                self._note(f"the entry of offset {last_offset} says that the log was stable up to {stable_offset}")
            self._next += 1

    def compare_aborted(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Check that the aborted transactions of the log have entries; entries of deleted records may be extra."""
        known = {(producer_id, last_offset) for _, producer_id, _, last_offset, _ in self._entries}
        for transaction in aborted:
            if (transaction.producer_id, transaction.last_offset) not in known:
                self._note(
                    f"producer {transaction.producer_id} aborted a transaction at {transaction.last_offset}, which has no entry"
                )
