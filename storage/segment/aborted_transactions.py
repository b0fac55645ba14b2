"""The aborted transactions of one segment, in memory."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable

from kafkacompat.storage.segment.transaction_index import AbortedTransaction

_BLOCK = 1024


class AbortedTransactions:
    """What a transaction index holds, in its order, in columns: a million take 32 MB.

    Last offsets and last stable offsets both ascend. Another thread may read while one is added.
    """

    __slots__ = ("_first_offsets", "_last_offsets", "_producer_ids", "_stable_offsets")

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._producer_ids = array("q")
        self._first_offsets = array("q")
        self._stable_offsets = array("q")
        self._last_offsets = array("q")
        for each in transactions:
            self.add(each)

    def __len__(self) -> int:
        return len(self._last_offsets)

    def add(self, transaction: AbortedTransaction) -> None:
        """Add one that ends behind all others."""
        self._producer_ids.append(transaction.producer_id)
        self._first_offsets.append(transaction.first_offset)
        self._stable_offsets.append(transaction.last_stable_offset)
        self._last_offsets.append(transaction.last_offset)  # last: it is what counts

    def since(self, slot: int = 0) -> list[AbortedTransaction]:
        """Those from one on, counted from 0."""
        part = slice(slot, len(self))
        columns = self._producer_ids, self._first_offsets, self._last_offsets, self._stable_offsets
        return list(map(AbortedTransaction, *(column[part] for column in columns)))

    def truncate_to(self, offset: int) -> bool:
        """Forget those that end at *offset* or later; whether there were any."""
        keep, count = bisect_left(self._last_offsets, offset), len(self)
        for column in (self._last_offsets, self._stable_offsets, self._first_offsets, self._producer_ids):
            del column[keep:]
        return keep < count

    @property
    def bounds(self) -> tuple[int, int]:
        """(where the earliest begins, where the log was stable up to when the last one ended); there has to be one."""
        return min(self._first_offsets), self._stable_offsets[len(self) - 1]

    def collect(self, start: int, end: int, into: list[AbortedTransaction], enough: int = sys.maxsize) -> bool:
        """Add those that reach into the offsets from *start* to before *end*; whether no later one can do so, or there are *enough*."""
        count = len(self)
        stop = bisect_left(self._stable_offsets, end, 0, count)
        slots = range(bisect_left(self._last_offsets, start, 0, count), min(stop + 1, count))
        for block in range(slots.start, slots.stop, _BLOCK):
            part = slice(block, min(block + _BLOCK, slots.stop))
            first_offsets = self._first_offsets[part]
            if min(first_offsets) < end:
                columns = self._producer_ids[part], first_offsets, self._last_offsets[part], self._stable_offsets[part]
                into += (each for each in map(AbortedTransaction, *columns) if each.first_offset < end)
                if len(into) >= enough:
                    return True
        return stop < count
