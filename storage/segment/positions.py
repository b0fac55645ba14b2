"""Offsets with the places of their batches, and the places of the last batches that were appended."""

from __future__ import annotations

from typing import NamedTuple

REMEMBERED_BATCHES = 32


class OffsetPosition(NamedTuple):
    """An offset and the place of its batch: its segment's base offset and the position in the file. -1 where unknown."""

    offset: int
    segment_base_offset: int
    position: int


class RecentBatches:
    """Positions and sizes of the last batches that were appended to the active segment, by base offset.

    Two generations of a dict are cheaper than a list that drops one batch at a time.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all batches: the active segment was replaced or truncated."""
        self._new: dict[int, tuple[int, int]] = {}
        self._old: dict[int, tuple[int, int]] = {}

    def add(self, base_offset: int, position: int, size_bytes: int) -> None:
        """Remember a batch."""
        self._new[base_offset] = position, size_bytes
        if len(self._new) == REMEMBERED_BATCHES:
            self._old, self._new = self._new, {}

    def get(self, base_offset: int) -> tuple[int, int] | None:
        """Return (position, size in bytes) of the batch that begins at an offset; None if it is not remembered."""
        return self._new.get(base_offset) or self._old.get(base_offset)
