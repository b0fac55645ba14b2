"""Reading a log: regions for a fetch, offsets for a timestamp.

A fetch decodes nothing. It finds the segment by bisection, asks its index, walks a few batch headers and
hands out the file with position and length. Where the last batches were appended is remembered, so that a
consumer at the tail costs no lookup at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

from kafkacompat.storage.segment.corruption import CorruptDataError, is_sound, spans
from kafkacompat.storage.segment.lookup import (
    SMALLEST_BATCH,
    ColdDataError,
    DamagedError,
    holds_no_record,
    scan_headers,
)
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segment_file import FileRegion, SegmentFile
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, read_records

REMEMBERED_BATCHES = 32
MOST_PASSED = 64
"""Segments without records that a read looks at, at most: they take about a millisecond."""


class OffsetPosition(NamedTuple):
    """An offset with the place of its batch: the segment's base offset and the position in its file."""

    offset: int
    segment_base_offset: int
    position: int


class FoundRecord(NamedTuple):
    """A record looked up by its time; leader_epoch is -1 when its batch has none."""

    offset: int
    timestamp: int
    leader_epoch: int


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


Examine: TypeAlias = "Callable[[Segment], None]"
"""Reads a segment in which damage was met, so that it is known afterwards."""


def find_timestamp(
    segments: Segments, timestamp: int, start_offset: int, max_decompressed_bytes: int, examine: Examine
) -> FoundRecord | None:
    """The first record at or after `start_offset` that is no earlier than `timestamp`; reads the disk.

    Batches that are damaged are passed over. Raises DamagedError where the way round them is not to be found.
    """
    for segment in segments:
        if segment.latest_ms >= timestamp:
            return _search(segment, timestamp, start_offset, max_decompressed_bytes, examine)
    return None


def _search(
    segment: Segment, timestamp: int, start_offset: int, max_decompressed_bytes: int, examine: Examine
) -> FoundRecord | None:
    try:
        return _search_sound(segment, timestamp, start_offset, max_decompressed_bytes)
    except DamagedError:
        examine(segment)
    return _search_sound(segment, timestamp, start_offset, max_decompressed_bytes)


def _search_sound(
    segment: Segment, timestamp: int, start_offset: int, max_decompressed_bytes: int
) -> FoundRecord | None:
    offset_index, time_index = segment.indexes()
    sought = max(time_index.lookup(timestamp), start_offset)
    position = offset_index.lookup(sought)
    if position >= segment.size_bytes > 0:
        raise DamagedError(f"the index leads to byte {position}, where the segment has ended")
    file = segment.pin()
    try:
        for start, end, _ in spans(segment.corrupt, position, segment.size_bytes):
            reached = start
            for batch_position, header in scan_headers(file.file, start, end):
                if header.base_offset > sought and batch_position == position > 0:
                    raise DamagedError(f"the index leads behind offset {sought}")
                reached = batch_position + header.size_bytes
                if header.max_timestamp < timestamp or header.last_offset < start_offset:
                    continue
                if not is_sound(file.file, batch_position, header):
                    raise DamagedError(f"the batch at byte {batch_position} does not match its checksum")
                batch = file.file.pread(header.size_bytes, batch_position)
                found = _first_record(batch, header, timestamp, start_offset, max_decompressed_bytes)
                if found is not None:
                    return found
            if reached != end:
                raise DamagedError(f"byte {reached} begins no batch")
    finally:
        file.release()
    return None


def _first_record(
    batch: bytes, header: BatchHeader, timestamp: int, start_offset: int, max_decompressed_bytes: int
) -> FoundRecord | None:
    try:
        for record in read_records(batch, max_decompressed_bytes):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return FoundRecord(record.offset, record.timestamp, header.partition_leader_epoch)
    except MalformedError:
        # Without validation of records anything may be in there. Found as a whole it stands in nobody's way.
        offset = max(header.base_offset, start_offset)
        return FoundRecord(offset, header.max_timestamp, header.partition_leader_epoch)
    return None


def find_max_timestamp(segments: Segments, max_decompressed_bytes: int, examine: Examine) -> FoundRecord | None:
    """The first record of the batch that first reached the log's largest timestamp; reads the disk. See find_timestamp."""
    latest = max(segments, key=lambda segment: segment.max_timestamp)
    if latest.max_timestamp < 0:
        return None
    return _search(latest, latest.max_timestamp, latest.base_offset, max_decompressed_bytes, examine)
