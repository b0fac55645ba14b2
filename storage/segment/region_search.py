"""Finding the regions of log files that a fetch sends.

A fetch decodes nothing. It finds the segment by bisection, asks its index, walks a few batch headers and returns
the file with position and length. A consumer at the tail needs no search: RecentBatches has the positions of the
last batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.header_scan import (
    SMALLEST_BATCH,
    ColdDataError,
    holds_no_record,
)
from kafkacompat.storage.segment.positions import OffsetPosition, RecentBatches
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.storage.segment.shared_files import FileRegion, SegmentFile

MOST_PASSED = 64
"""At most this many segments without records are passed by one read: about a millisecond."""


class FoundRegion(NamedTuple):
    """A region to read, its segment, and whether the segment has no record from the region's beginning on."""

    segment: Segment
    region: FileRegion
    holds_no_record: bool


def find_regions(
    segments: Segments,
    recent: RecentBatches,
    offset: int,
    max_bytes: int,
    upper: OffsetPosition,
    at_least_one_batch: bool,
    may_block: bool,
) -> Iterator[FoundRegion]:
    """Yield the region of each segment for Log.read, while there is room; `offset` is inside the log and before `upper`."""
    has_found = False
    # On a disk thread, the list of segments may be replaced meanwhile.
    following: Segment | None = segments[max(0, segments.find_slot(offset))]
    while (segment := following) is not None:
        if segment.base_offset > upper.segment_base_offset:
            return
        following = segments.after(segment)
        at_upper = segment.base_offset == upper.segment_base_offset
        end = upper.position if at_upper else segment.size_bytes
        known = recent.get(offset) if segment is segments.active and not segment.corrupt else None
        file = segment.pin(may_block=may_block)
        try:
            place = known or _find_place(segment, file, offset, may_block)
            is_empty = (
                place is not None
                and place[1] == SMALLEST_BATCH
                and not segment.corrupt
                and holds_no_record(file.file, place[0], end, may_block=may_block)
            )
        except BaseException:
            file.release()
            raise
        if place is None:
            file.release()
            continue
        bad_position = next((bad.position for bad in segment.corrupt if bad.position > place[0]), end)
        region = _cut_region(file, place, min(end, bad_position), max_bytes, at_least_one_batch)
        if region is None:
            return
        has_found = True
        yield FoundRegion(segment, region, is_empty)
    active = segments.active
    if not has_found and active.size_bytes and upper.segment_base_offset == active.base_offset:
        # The last batch ends where the log does, so it should hold `offset`.
        raise CorruptDataError(f"{active!r} holds no batch of offset {offset}", None)


def skip_empty_regions(regions: Iterator[FoundRegion]) -> FoundRegion | None:
    """Return the first region with records, else the last one, so that readers reach the end.

    Compaction leaves a batch without records in each segment that it empties. After ten responses without a message,
    librdkafka takes the next one for a message that is too large to be fetched.
    """
    candidate: FoundRegion | None = None
    try:
        for following in islice(regions, MOST_PASSED):
            if candidate is not None:
                candidate.region.release()
            candidate = following
            if not candidate.holds_no_record:
                break
    except (ColdDataError, CorruptDataError):
        # The read that continues here raises it.
        if candidate is None:
            raise
    except BaseException:
        if candidate is not None:
            candidate.region.release()
        raise
    return candidate


def _find_place(segment: Segment, file: SegmentFile, offset: int, may_block: bool) -> tuple[int, int] | None:
    place = segment.find_batch(offset, segment.size_bytes, file, may_block=may_block)
    return (place.position, place.size_bytes) if place is not None else None


def _cut_region(
    file: SegmentFile, place: tuple[int, int], end: int, max_bytes: int, at_least_one_batch: bool
) -> FileRegion | None:
    position, batch_bytes = place
    if max_bytes < batch_bytes:
        max_bytes = batch_bytes if at_least_one_batch else 0
    size_bytes = min(end - position, max_bytes)
    if size_bytes > 0:
        return FileRegion(file, position, size_bytes)
    file.release()
    return None
