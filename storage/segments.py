"""The segments of one log, in order. The last one is the active one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from kafkacompat.storage.segment import Segment


class Segments:
    """An ordered list that is replaced, never changed, so that another thread always sees a whole one."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.replace(list(segments))

    def replace(self, segments: Sequence[Segment]) -> None:
        """Take a new list, which has at least one segment."""
        self._bases = [segment.base_offset for segment in segments]
        self._segments = tuple(segments)
        self.active = segments[-1]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def floor(self, offset: int) -> int:
        """Slot of the last segment that begins at or before `offset`; -1 when all begin later."""
        return bisect_right(self._bases, offset) - 1

    def since(self, offset: int) -> tuple[Segment, ...]:
        """The segment that `offset` lies in and all after it."""
        return self._segments[max(0, self.floor(offset)) :]

    def unsealed(self) -> list[tuple[Segment, Segment]]:
        """The segments before the active one that are still to be sealed, each with the next one, oldest first.

        They are the latest ones: a segment is sealed after all before it.
        """
        segments = self._segments
        slot = len(segments) - 1
        while slot and not segments[slot - 1].sealed:
            slot -= 1
        return list(pairwise(segments[slot:]))

    @property
    def size_bytes(self) -> int:
        """Bytes of all log files together."""
        return sum(segment.size_bytes for segment in self._segments)
