"""The aborted transactions of one segment, in memory."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable

from kafkacompat.storage.segment.transaction_index import AbortedTransaction

_BLOCK = 1024


class AbortedTransactions:
    """The entries of a transaction index, in order, as columns: a million take 32 MB.

    Last offsets and last stable offsets both ascend. Another thread may read while one adds an entry.
    """

    __slots__ = ("_first_offsets", "_last_offsets", "_producer_ids", "_stable_offsets")

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._producer_ids = array("q")
        self._first_offsets = array("q")
        self._stable_offsets = array("q")
        self._last_offsets = array("q")
        for transaction in transactions:
            self.add(transaction)

    def __len__(self) -> int:
        return len(self._last_offsets)

    def add(self, transaction: AbortedTransaction) -> None:
        """Add a transaction that ends after all others."""
        self._producer_ids.append(transaction.producer_id)
        self._first_offsets.append(transaction.first_offset)
        self._stable_offsets.append(transaction.last_stable_offset)
        self._last_offsets.append(transaction.last_offset)  # last: its length is the number of entries

    def since(self, slot: int = 0) -> list[AbortedTransaction]:
        """Return the entries from a slot on."""
        part = slice(slot, len(self))
        columns = self._producer_ids, self._first_offsets, self._last_offsets, self._stable_offsets
        return list(map(AbortedTransaction, *(column[part] for column in columns)))

    def truncate_to(self, offset: int) -> bool:
        """Drop the entries that end at `offset` or later; return whether any did."""
        keep, count = bisect_left(self._last_offsets, offset), len(self)
        for column in (self._last_offsets, self._stable_offsets, self._first_offsets, self._producer_ids):
            del column[keep:]
        return keep < count

    @property
    def bounds(self) -> tuple[int, int]:
        """(smallest first offset, last stable offset of the last entry); there has to be an entry."""
        return min(self._first_offsets), self._stable_offsets[len(self) - 1]

    def collect(self, start: int, end: int, into: list[AbortedTransaction], enough: int = sys.maxsize) -> bool:
        """Add the entries that overlap the offsets from `start` to before `end` to `into`.

        Returns whether no later entry can overlap, or `into` holds `enough`.
        """
        count = len(self)
        stop = bisect_left(self._stable_offsets, end, 0, count)
        slots = range(bisect_left(self._last_offsets, start, 0, count), min(stop + 1, count))
        for block in range(slots.start, slots.stop, _BLOCK):
            part = slice(block, min(block + _BLOCK, slots.stop))
            first_offsets = self._first_offsets[part]
            if min(first_offsets) < end:
                columns = self._producer_ids[part], first_offsets, self._last_offsets[part], self._stable_offsets[part]
                into += (
                    transaction for transaction in map(AbortedTransaction, *columns) if transaction.first_offset < end
                )
                if len(into) >= enough:
                    return True
        return stop < count
