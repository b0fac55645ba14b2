"""The segments of one log, in order. The last one is active."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter

from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_files import SegmentFiles
from kafkacompat.storage.segment.shared_files import SegmentCache

_BASE_OFFSET = attrgetter("base_offset")


def take_newest_segments(
    files: Files, directory: str, segments: Sequence[Segment], cache: SegmentCache, take: Callable[[SegmentFiles], None]
) -> None:
    """Take the newest segments out of a log by `take`, which removes or renames the files of one. [disk]

    The last segment goes first, and is synced before the next: a crash leaves a log that ends earlier.
    """
    for segment in reversed(segments):
        cache.forget(segment)
        segment.unload()
        take(segment.files)
        files.sync_directory(directory)


class Segments:
    """The ordered list of segments. It is replaced, never changed, so that any thread sees a consistent one."""

    __slots__ = ("_bases", "_measured", "_segments", "active")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.replace(list(segments))

    def replace(self, segments: Sequence[Segment]) -> None:
        """Use a new list of at least one segment."""
        self._bases = [segment.base_offset for segment in segments]
        self._segments = tuple(segments)
        self.active = segments[-1]
        # Only the active segment grows or is cut. One tuple, so that any thread sees both parts of the same list.
        self._measured = self.active, sum(segment.size_bytes for segment in self._segments[:-1])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, segment: object) -> bool:
        if not isinstance(segment, Segment):
            return False
        segments = self._segments
        slot = bisect_left(segments, segment.base_offset, key=_BASE_OFFSET)
        return slot < len(segments) and segments[slot] is segment

    def after(self, segment: Segment) -> Segment | None:
        """Return the segment after one; None after the last."""
        segments = self._segments
        slot = bisect_right(segments, segment.base_offset, key=_BASE_OFFSET)
        return segments[slot] if slot < len(segments) else None

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def find_slot(self, offset: int) -> int:
        """Return the slot of the last segment that begins at `offset` or before; -1 if all begin later."""
        return bisect_right(self._bases, offset) - 1

    def since(self, offset: int) -> tuple[Segment, ...]:
        """Return the segment that holds `offset` and all after it."""
        return self._segments[max(0, self.find_slot(offset)) :]

    def unsealed(self) -> list[tuple[Segment, Segment]]:
        """Return the unsealed segments before the active one, oldest first, each with the next segment.

        They are the newest, because a segment is sealed after all before it.
        """
        segments = self._segments
        slot = len(segments) - 1
        while slot and not segments[slot - 1].sealed:
            slot -= 1
        return list(pairwise(segments[slot:]))

    @property
    def size_bytes(self) -> int:
        """Bytes of all log files together."""
        active, sealed_bytes = self._measured
        return sealed_bytes + active.size_bytes
