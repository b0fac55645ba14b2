"""Offsets with the places of their batches, and the places of the last batches that were appended."""

from __future__ import annotations

from typing import NamedTuple

REMEMBERED_BATCHES = 32


class OffsetPosition(NamedTuple):
    """An offset with the place of its batch: the segment's base offset and the position in its file."""

    offset: int
    segment_base_offset: int
    position: int


class RecentBatches:
    """Position and size in the active segment of the last batches appended, by base offset.

    Two generations of a dict: cheaper than any list that forgets one at a time.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all: the active segment is another one or was cut."""
        self._new: dict[int, tuple[int, int]] = {}
        self._old: dict[int, tuple[int, int]] = {}

    def add(self, base_offset: int, position: int, size_bytes: int) -> None:
        """Remember a batch."""
        self._new[base_offset] = position, size_bytes
        if len(self._new) == REMEMBERED_BATCHES:
            self._old, self._new = self._new, {}

    def get(self, base_offset: int) -> tuple[int, int] | None:
        """(position, size in bytes) of a batch that begins at an offset."""
        return self._new.get(base_offset) or self._old.get(base_offset)
