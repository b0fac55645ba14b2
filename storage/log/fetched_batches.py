"""Checking the batches of a Fetch response before a follower appends them as they came.

The leader has checked the records. The follower checks what its own log depends on: length, format, checksum, the order
of offsets and of leader epochs, and the markers of transactions. The checksum covers neither the offset nor the epoch of
a batch, so both have to fit the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.storage.producers.transaction_replay import ABORT, COMMIT
from kafkacompat.storage.segment.indexes import MAX_RELATIVE_OFFSET
from kafkacompat.storage.segment.walk import LARGEST_OFFSET
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC_V2,
    BatchHeader,
    crc_matches,
    read_header,
    read_records,
)

_MAGIC_AT = 16
_KIND = slice(2, 4)
_COORDINATOR_EPOCH = slice(2, 6)


class FetchedMarker(NamedTuple):
    """The end of a transaction, as its marker's record says."""

    is_abort: bool
    coordinator_epoch: int


class FetchedBatch(NamedTuple):
    """A sound batch, and its place in the fetched bytes; `marker` is None for batches without one."""

    header: BatchHeader
    start: int
    end: int
    marker: FetchedMarker | None


def check_fetched_batches(
    records: Buffer, *, next_offset: int, oldest_epoch: int, newest_epoch: int
) -> list[FetchedBatch]:
    """Check every whole batch; one that is cut off at the end is left out.

    The log ends before `next_offset`, with records of `oldest_epoch`; the leader's epoch is `newest_epoch`. Raises
    KafkaError CORRUPT_MESSAGE for damage, UNSUPPORTED_FOR_MESSAGE_FORMAT for formats 0 and 1, and INVALID_RECORD for an
    offset or an epoch that cannot follow.
    """
    batches: list[FetchedBatch] = []
    for start, batch, header in _split_batches(memoryview(records)):
        if not crc_matches(batch, header):
            raise _build_damage_error(start, "does not match its checksum")
        _check_offsets(header, next_offset)
        if not oldest_epoch <= header.partition_leader_epoch <= newest_epoch:
            detail = (
                f"the batch at offset {header.base_offset} has leader epoch {header.partition_leader_epoch}, which is not "
                f"between {oldest_epoch}, the log's, and {newest_epoch}, the leader's"
            )
            raise KafkaError(ErrorCode.INVALID_RECORD, detail)
        marker = _read_marker(start, batch, header) if header.is_control else None
        batches.append(FetchedBatch(header, start, start + len(batch), marker))
        next_offset, oldest_epoch = header.last_offset + 1, header.partition_leader_epoch
    return batches


def read_first_offsets(records: Buffer) -> tuple[int, int] | None:
    """Return the base offset and the last offset that the first batch claims; None without a whole header."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    return header.base_offset, header.last_offset


def _split_batches(view: memoryview) -> Iterator[tuple[int, memoryview, BatchHeader]]:
    start = 0
    while len(view) - start > _MAGIC_AT:
        magic, length = (
            view[start + _MAGIC_AT],
            int.from_bytes(view[start + 8 : start + LENGTH_END], "big", signed=True),
        )
        if magic in (0, 1):
            detail = f"byte {start} of the fetched records begins a message of format version {magic}; fetch version 4 or newer"
            raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, detail)
        if magic != MAGIC_V2:
            raise _build_damage_error(start, f"has format version {magic}, which does not exist")
        if length < HEADER_SIZE - LENGTH_END:
            raise _build_damage_error(start, f"has length {length}, which is impossible")
        end = start + LENGTH_END + length
        if end > len(view):
            return
        yield start, view[start:end], read_header(view, start)
        start = end


def _check_offsets(header: BatchHeader, next_offset: int) -> None:
    base_offset, last_offset = header.base_offset, header.last_offset
    if header.last_offset_delta < 0 or last_offset >= LARGEST_OFFSET:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch cannot have the offsets {base_offset} to {last_offset}")
    if base_offset < next_offset:
        detail = f"the batch of offsets {base_offset} to {last_offset} cannot follow offset {next_offset - 1}"
        raise KafkaError(ErrorCode.INVALID_RECORD, detail)
    if last_offset - next_offset > MAX_RELATIVE_OFFSET:
        detail = f"offset {last_offset} is too far after {next_offset} for a segment that begins there"
        raise KafkaError(ErrorCode.INVALID_RECORD, detail)


def _read_marker(start: int, batch: memoryview, header: BatchHeader) -> FetchedMarker | None:
    """Return the marker of a control batch; None if compaction emptied the batch."""
    if header.codec or header.record_count > 1 or header.producer_id < 0:
        raise _build_damage_error(start, "is no marker of a transaction, though it is a control batch")
    try:
        record = next(read_records(batch), None)
    except MalformedError as error:
        raise _build_damage_error(start, f"holds no readable marker ({error})") from error
    if record is None:
        return None
    kind = int.from_bytes((record.key or b"")[_KIND], "big")
    epoch = (record.value or b"")[_COORDINATOR_EPOCH]
    if len(record.key or b"") < _KIND.stop or kind not in (ABORT, COMMIT) or len(epoch) < 4:
        raise _build_damage_error(start, "holds no marker of a transaction, though it is a control batch")
    return FetchedMarker(kind == ABORT, int.from_bytes(epoch, "big", signed=True))


def _build_damage_error(start: int, problem: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at byte {start} of the fetched records {problem}")
