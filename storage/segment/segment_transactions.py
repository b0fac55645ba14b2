"""The transaction index of a segment: in memory while the segment grows, on the disk with every sync of it.

The active segment's entries are in memory. Whoever puts its batches on the disk puts the entries there first, so a segment
in front of the recovery point has a whole index, and one behind it gets it built again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.aborted_transactions import AbortedTransactions
from kafkacompat.storage.segment.indexes import CorruptIndexError
from kafkacompat.storage.segment.lookup import ColdDataError
from kafkacompat.storage.segment.segment_file import SegmentCache
from kafkacompat.storage.segment.segment_files import TXN_INDEX_SUFFIX, SegmentFiles
from kafkacompat.storage.segment.transaction_index import ENTRY, AbortedTransaction, encode, read_aborted, write_aborted

KEPT = 1000
"""So many aborted transactions of a segment stay in memory once they were read; of more only where they begin and end."""


class SegmentTransactions(SegmentFiles):
    """What a segment knows of the aborted transactions whose markers lie in it."""

    __slots__ = ("_aborted", "_bounds", "_written")

    def __init__(self, files: Files, directory: str, base_offset: int, cache: SegmentCache, ending: str) -> None:
        super().__init__(files, directory, base_offset, cache, ending)
        self._aborted: AbortedTransactions | None = None
        self._bounds: tuple[int, int] | None = None
        self._written = 0

    def make_files(self) -> None:
        """As SegmentFiles; a transaction index of that name, which belonged to another segment, goes. [disk]"""
        super().make_files()
        self.replace_aborted(())

    def start_without_aborted(self) -> None:
        """Begin with an empty transaction index."""
        self._aborted, self._bounds, self._written = AbortedTransactions(), None, 0

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """Take in the next one, of the active segment. [loop]"""
        assert self._aborted is not None
        self._aborted.add(transaction)

    def aborted(self, *, may_block: bool = True) -> AbortedTransactions:
        """All of them; ColdDataError when they would have to be read and `may_block` is False. Raises CorruptIndexError."""
        aborted = self._aborted
        if aborted is None:
            if not may_block:
                raise ColdDataError
            aborted = AbortedTransactions(read_aborted(self._files, self.path(TXN_INDEX_SUFFIX)))
            self._bounds = aborted.bounds if len(aborted) else None
            self._written, self._aborted = len(aborted), aborted
            if self.sealed:
                self._cache.touch(self)
        return aborted

    def has_readable_aborted(self) -> bool:
        """Whether the transaction index on the disk, if there is one, is whole. [disk]"""
        try:
            self.aborted()
        except CorruptIndexError:
            return False
        return True

    def collect_aborted(
        self, start: int, end: int, into: list[AbortedTransaction], *, may_block: bool, enough: int = sys.maxsize
    ) -> bool:
        """As AbortedTransactions.collect; ColdDataError as from `aborted`."""
        aborted, bounds = self._aborted, self._bounds
        if aborted is None and bounds is not None and bounds[0] >= end:
            return bounds[1] >= end
        return self.aborted(may_block=may_block).collect(start, end, into, enough)

    def replace_aborted(self, transactions: Sequence[AbortedTransaction]) -> None:
        """Have these and no others, on the disk as well. [disk]"""
        write_aborted(self._files, self.path(TXN_INDEX_SUFFIX), list(transactions))
        self._aborted, self._bounds = AbortedTransactions(transactions), None
        self._written = len(transactions)

    def take_aborted_of(self, other: SegmentTransactions) -> None:
        """Have those of *other*, whose file was copied. [disk]"""
        self._aborted, self._bounds = AbortedTransactions(other.aborted().since()), None
        self._written = len(self._aborted)

    def truncate_aborted(self, offset: int) -> None:
        """Forget those whose markers are not in the log any more, which ends at `offset`. [disk]"""
        aborted = self.aborted()
        if aborted.truncate_to(offset):
            self.replace_aborted(aborted.since())

    def write_aborted(self) -> bool:
        """Put what the file lacks on the disk; whether the file was made for it. [disk]"""
        aborted, written = self._aborted, self._written
        if aborted is None or len(aborted) == written:
            return False
        added = aborted.since(written)
        file = self._files.open(self.path(TXN_INDEX_SUFFIX), create=True)
        try:
            file.truncate(written * ENTRY.size)  # what failed half-way, or was there before this log
            file.append((encode(added),), len(added) * ENTRY.size)
            file.sync()
        finally:
            file.close()
        self._written = written + len(added)
        return written == 0

    def unload(self) -> None:
        """Give back what is opened again when needed."""
        aborted = self._aborted
        if self.sealed and aborted is not None and len(aborted) > KEPT:
            self._bounds = aborted.bounds
            self._aborted = None
        super().unload()
