"""Reading fetched batches as the Java client does: without control records, and without what was aborted."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from kafkacompat.wire.apis.fetch import AbortedTransaction
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import crc_matches, read_header, read_records, split_batches

_MARKER_KEY = struct.Struct(">hh")
ABORT = 0


class FetchedRecords(NamedTuple):
    """The records as (offset, value), the next offset to read, and the leader epoch of the last batch; -1 without one."""

    records: list[tuple[int, str]]
    next_offset: int
    leader_epoch: int


def read_fetched(data: Buffer, offset: int, aborted: Iterable[AbortedTransaction] | None) -> FetchedRecords:
    """Read batches from *offset* on; *aborted* is the response's list, None at read_uncommitted.

    Raises AssertionError for a batch with a wrong checksum.
    """
    left = sorted(aborted or (), key=lambda transaction: transaction.first_offset)
    aborted_ids: set[int] = set()
    records: list[tuple[int, str]] = []
    next_offset, epoch = offset, -1
    for batch in split_batches(data):
        header = read_header(batch)
        assert crc_matches(batch, header), f"the batch at offset {header.base_offset} has a wrong checksum"
        if header.last_offset < offset:
            continue
        if aborted is not None and header.producer_id >= 0:
            while left and left[0].first_offset <= header.last_offset:
                aborted_ids.add(left.pop(0).producer_id)
        next_offset, epoch = header.last_offset + 1, header.partition_leader_epoch
        if header.is_control:
            if _is_abort(batch):
                aborted_ids.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted_ids):
            records += [
                (record.offset, (record.value or b"").decode("utf-8", "replace"))
                for record in read_records(batch)
                if record.offset >= offset
            ]
    return FetchedRecords(records, next_offset, epoch)


def _is_abort(batch: memoryview) -> bool:
    record = next(iter(read_records(batch)), None)
    return record is not None and record.key is not None and _MARKER_KEY.unpack_from(record.key)[1] == ABORT
