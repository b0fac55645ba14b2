"""The open transactions of one partition: those without a marker, or with one that is not replicated yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from kafkacompat.storage.segment.positions import OffsetPosition

NO_PLACE = (-1, -1)
"""The place of a batch that is known from a snapshot alone."""


class OpenTransactions:
    """Open transactions by the offsets of their first batches.

    A transaction stays open until its marker is below the high watermark (`settle`).
    """

    __slots__ = ("_decided", "_undecided", "first")

    def __init__(self) -> None:
        self._undecided: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._decided: dict[int, tuple[int, tuple[int, int]]] = {}
        self.first: OffsetPosition | None = None
        """Where the earliest begins, with position -1 if only the disk knows it; None without open transactions."""

    def __len__(self) -> int:
        return len(self._undecided) + len(self._decided)

    def begin(self, first_offset: int, place: tuple[int, int] = NO_PLACE) -> None:
        """Add a transaction that begins after all others; `place` is (segment base offset, position) of its first batch."""
        self._undecided[first_offset] = place
        if self.first is None:
            self.first = OffsetPosition(first_offset, *place)

    def restore(self, first_offsets: Iterable[int]) -> None:
        """Start with the open transactions of a snapshot."""
        self._undecided = OrderedDict.fromkeys(sorted(first_offsets), NO_PLACE)
        self._decided = {}
        self._find_first()

    def end(self, first_offset: int, marker_offset: int) -> None:
        """Note that a marker ends the transaction that begins at `first_offset`."""
        place = self._undecided.pop(first_offset, NO_PLACE)
        self._decided[first_offset] = marker_offset, place

    def stable_offset_without(self, first_offset: int, marker_offset: int) -> int:
        """Return the first offset of the earliest other transaction without a marker, else the offset after the marker."""
        for other in self._undecided:
            if other != first_offset:
                return other
        return marker_offset + 1

    def keep_decided(self, earlier: OpenTransactions, end_offset: int) -> None:
        """Keep the transactions of a state before a truncation whose markers are before `end_offset`."""
        for first_offset, decided in earlier._decided.items():
            if decided[0] < end_offset:
                self._decided.setdefault(first_offset, decided)
        self._find_first()

    def remove_decided(self, high_watermark: int) -> None:
        """Remove the transactions whose markers are below the high watermark."""
        if self._decided:
            left = {first: decided for first, decided in self._decided.items() if decided[0] >= high_watermark}
            self._decided = left
            self._find_first()

    def _find_first(self) -> None:
        self.first = None
        if self._undecided:
            first_offset, place = next(iter(self._undecided.items()))
            self.first = OffsetPosition(first_offset, *place)
        for first_offset, (_, place) in self._decided.items():
            if self.first is None or first_offset < self.first.offset:
                self.first = OffsetPosition(first_offset, *place)
