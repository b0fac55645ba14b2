"""The transaction index of a segment: in memory while the segment grows, on the disk with every sync of it.

The active segment's entries are in memory. A sync of its batches writes their entries first, so a segment before the
recovery point has a whole index, and recovery rebuilds the index of a later one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.storage.segment.aborted_transactions import AbortedTransactions
from kafkacompat.storage.segment.segment_files import TXN_INDEX_SUFFIX, SegmentFiles
from kafkacompat.storage.segment.transaction_index import (
    ABORTED_ENTRY,
    AbortedTransaction,
    encode_aborted,
    read_aborted,
    write_aborted,
)

_NONE = AbortedTransactions()
"""Stands for no transactions in all segments: ten thousand partitions would have as many empty columns otherwise."""

MOST_KEPT = 1000
"""This many aborted transactions of a segment stay in memory once they were read; of more only their bounds stay."""


class SegmentTransactions:
    """The aborted transactions whose markers lie in a segment."""

    __slots__ = ("_bounds", "_files", "_written", "loaded")

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        self._bounds: tuple[int, int] | None = None
        self._written = 0
        self.loaded: AbortedTransactions | None = None
        """All of them; None while only the file holds them."""

    def start_empty(self) -> None:
        """Begin without transactions, whatever the file holds."""
        self.loaded, self._bounds, self._written = _NONE, None, 0

    def add(self, transaction: AbortedTransaction) -> None:
        """Add the next one, of the active segment. [loop]"""
        loaded = self.loaded
        assert loaded is not None
        if loaded is _NONE:
            self.loaded = AbortedTransactions((transaction,))
        else:
            loaded.add(transaction)

    def load(self) -> AbortedTransactions:
        """Read the file. Raises CorruptIndexError. [disk]"""
        loaded = self.adopt(read_aborted(self._files.system, self._files.path(TXN_INDEX_SUFFIX)))
        self._bounds = loaded.bounds if len(loaded) else None
        return loaded

    def collect_by_bounds(self, end: int) -> bool | None:
        """As AbortedTransactions.collect, for a range before offset `end` in which the bounds alone show that none begins.

        None where the file has to be read. [loop]
        """
        bounds = self._bounds
        if self.loaded is None and bounds is not None and bounds[0] >= end:
            return bounds[1] >= end
        return None

    def replace(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Hold these and no others, in the file as well. [disk]"""
        write_aborted(self._files.system, self._files.path(TXN_INDEX_SUFFIX), list(transactions))
        self.adopt(transactions)

    def adopt(self, transactions: Sequence[AbortedTransaction]) -> AbortedTransactions:
        """Hold these, which the file holds already."""
        self.loaded = loaded = AbortedTransactions(transactions) if transactions else _NONE
        self._bounds, self._written = None, len(transactions)
        return loaded

    def write(self) -> bool:
        """Append the entries that the file lacks, and sync it; returns whether this created the file. [disk]"""
        loaded, written = self.loaded, self._written
        if loaded is None or len(loaded) == written:
            return False
        added = loaded.since(written)
        file = self._files.system.open(self._files.path(TXN_INDEX_SUFFIX), create=True)
        try:
            file.truncate(written * ABORTED_ENTRY.size)  # drops entries of a failed write, or of an earlier log
            file.append((encode_aborted(added),), len(added) * ABORTED_ENTRY.size)
            file.sync()
        finally:
            file.close()
        self._written = written + len(added)
        return written == 0

    def unload(self) -> None:
        """Keep only the bounds of very many transactions; they are read again when needed."""
        loaded = self.loaded
        if loaded is not None and len(loaded) > MOST_KEPT:
            self._bounds = loaded.bounds
            self.loaded = None
