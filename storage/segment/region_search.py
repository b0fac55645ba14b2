"""Finding the regions of log files that a fetch sends.

A fetch decodes nothing. It finds the segment by bisection, asks its index, walks a few batch headers and
hands out the file with position and length. A consumer at the tail costs no lookup at all: RecentBatches knows
where the last batches were appended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.lookup import (
    SMALLEST_BATCH,
    ColdDataError,
    holds_no_record,
)
from kafkacompat.storage.segment.positions import OffsetPosition, RecentBatches
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_file import FileRegion, SegmentFile
from kafkacompat.storage.segment.segments import Segments

MOST_PASSED = 64
"""Segments without records that a read looks at, at most: they take about a millisecond."""


class FoundRegion(NamedTuple):
    """A region to read, the segment that it lies in, and whether there is no record from its beginning to the segment's end."""

    segment: Segment
    region: FileRegion
    holds_no_record: bool


def regions_from(
    segments: Segments,
    recent: RecentBatches,
    offset: int,
    max_bytes: int,
    upper: OffsetPosition,
    at_least_one_batch: bool,
    may_block: bool,
) -> Iterator[FoundRegion]:
    """Yield what each segment has for Log.read, as long as there is room for it; `offset` lies inside the log and before `upper`."""
    found = False
    # In a disk thread the list may become another one meanwhile.
    following: Segment | None = segments[max(0, segments.floor(offset))]
    while (segment := following) is not None:
        if segment.base_offset > upper.segment_base_offset:
            return
        following = segments.behind(segment)
        at_upper = segment.base_offset == upper.segment_base_offset
        end = upper.position if at_upper else segment.size_bytes
        known = recent.get(offset) if segment is segments.active and not segment.corrupt else None
        file = segment.pin(may_block=may_block)
        try:
            place = known or _find(segment, file, offset, may_block)
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
        region = _region(file, place, min(end, bad_position), max_bytes, at_least_one_batch)
        if region is None:
            return
        found = True
        yield FoundRegion(segment, region, is_empty)
    active = segments.active
    if not found and active.size_bytes and upper.segment_base_offset == active.base_offset:
        # Its last batch ends where the log does, so `offset` should have been found.
        raise CorruptDataError(f"{active!r} holds no batch of offset {offset}", None)


def first_with_records(regions: Iterator[FoundRegion]) -> FoundRegion | None:
    """Pass by regions without records, of which compaction leaves one in each segment that it empties.

    After ten answers without a message librdkafka takes the next for a message too large to be fetched. Where nothing follows
    such a region it is the answer, so that readers get to the end.
    """
    found: FoundRegion | None = None
    try:
        for following in islice(regions, MOST_PASSED):
            if found is not None:
                found.region.release()
            found = following
            if not found.holds_no_record:
                break
    except (ColdDataError, CorruptDataError):
        # Who then asks for what follows is told.
        if found is None:
            raise
    except BaseException:
        if found is not None:
            found.region.release()
        raise
    return found


def _find(segment: Segment, file: SegmentFile, offset: int, may_block: bool) -> tuple[int, int] | None:
    place = segment.find(offset, segment.size_bytes, file, may_block=may_block)
    return (place.position, place.size_bytes) if place is not None else None


def _region(
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
