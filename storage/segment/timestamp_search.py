"""Finding records by timestamp. Everything here is a disk operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kafkacompat.storage.segment.corruption import is_sound_batch, split_at_damage
from kafkacompat.storage.segment.header_scan import (
    DamagedError,
    scan_headers,
)
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.segments import Segments
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, read_records


class FoundRecord(NamedTuple):
    """A record found by its timestamp (ms); leader_epoch is -1 if its batch has none."""

    offset: int
    timestamp: int
    leader_epoch: int


ExamineSegment: TypeAlias = "Callable[[Segment], None]"
"""Reads a segment in which a search met damage, so that the damage is known afterwards."""


def find_timestamp(
    segments: Segments, timestamp: int, start_offset: int, max_decompressed_bytes: int, examine: ExamineSegment
) -> FoundRecord | None:
    """Find the first record from `start_offset` on whose timestamp is >= `timestamp`; None without one.

    Damaged batches are skipped. Raises DamagedError if there is no way past them.
    """
    for segment in segments:
        if segment.latest_ms >= timestamp:
            return _search_segment(segment, timestamp, start_offset, max_decompressed_bytes, examine)
    return None


def _search_segment(
    segment: Segment, timestamp: int, start_offset: int, max_decompressed_bytes: int, examine: ExamineSegment
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
        raise DamagedError(f"the index leads to byte {position}, after the segment's end")
    file = segment.pin()
    try:
        for start, end, _ in split_at_damage(segment.corrupt, position, segment.size_bytes):
            reached = start
            for batch_position, header in scan_headers(file.file, start, end):
                if header.base_offset > sought and batch_position == position > 0:
                    raise DamagedError(f"the index leads past offset {sought}")
                reached = batch_position + header.size_bytes
                if header.max_timestamp < timestamp or header.last_offset < start_offset:
                    continue
                if not is_sound_batch(file.file, batch_position, header):
                    raise DamagedError(f"the batch at byte {batch_position} does not match its checksum")
                batch = file.file.pread(header.size_bytes, batch_position)
                record = _first_record(batch, header, timestamp, start_offset, max_decompressed_bytes)
                if record is not None:
                    return record
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
        # Without validation of records a batch may hold anything. It counts as one record, so that searches pass it.
        offset = max(header.base_offset, start_offset)
        return FoundRecord(offset, header.max_timestamp, header.partition_leader_epoch)
    return None


def find_max_timestamp(segments: Segments, max_decompressed_bytes: int, examine: ExamineSegment) -> FoundRecord | None:
    """Find the first record with the log's largest timestamp; None if no record has one. Raises as find_timestamp."""
    latest = max(segments, key=lambda segment: segment.max_timestamp)
    if latest.max_timestamp < 0:
        return None
    return _search_segment(latest, latest.max_timestamp, latest.base_offset, max_decompressed_bytes, examine)
