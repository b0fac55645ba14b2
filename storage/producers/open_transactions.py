"""The transactions of one partition that consumers may not read yet: no marker ends them, or it is not replicated yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from kafkacompat.storage.segment.positions import OffsetPosition

NO_PLACE = (-1, -1)
"""Of a batch that is known from a snapshot alone."""


class OpenTransactions:
    """Each by the offset of its first batch. A transaction counts until its marker lies below the high watermark (`settle`)."""

    __slots__ = ("_decided", "_undecided", "first")

    def __init__(self) -> None:
        self._undecided: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._decided: dict[int, tuple[int, tuple[int, int]]] = {}
        self.first: OffsetPosition | None = None
        """Where the earliest begins, with a position of -1 where only the disk knows; None when there is none."""

    def __len__(self) -> int:
        return len(self._undecided) + len(self._decided)

    def begin(self, first_offset: int, place: tuple[int, int] = NO_PLACE) -> None:
        """A transaction begins, later than all others; *place* is its batch's segment base offset and position."""
        self._undecided[first_offset] = place
        if self.first is None:
            self.first = OffsetPosition(first_offset, *place)

    def restore(self, first_offsets: Iterable[int]) -> None:
        """Start from what a snapshot tells."""
        self._undecided = OrderedDict.fromkeys(sorted(first_offsets), NO_PLACE)
        self._decided = {}
        self._find_first()

    def end(self, first_offset: int, marker_offset: int) -> None:
        """A marker ends the transaction that begins at *first_offset*."""
        place = self._undecided.pop(first_offset, NO_PLACE)
        self._decided[first_offset] = marker_offset, place

    def stable_offset_without(self, first_offset: int, marker_offset: int) -> int:
        """Where the first of the others begins that no marker has ended, else the offset behind the marker."""
        for other in self._undecided:
            if other != first_offset:
                return other
        return marker_offset + 1

    def settle(self, high_watermark: int) -> None:
        """Forget those whose markers lie below the high watermark."""
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
