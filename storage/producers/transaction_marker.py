"""Transaction markers, which a coordinator writes to each partition of a transaction at its end."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.intake.validation import PATCHED_END, CheckedBatch
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.storage.producers.transaction_replay import ABORT, COMMIT
from kafkacompat.wire import record_batch
from kafkacompat.wire.record_batch import LENGTH_END, MAGIC_V2, BatchHeader, assemble_batch

_RECORD = Struct(">5shhBhiB")
"""Length, attributes, deltas and key length; version and type; value length; version and coordinator epoch; number of
headers."""

MARKER_BYTES = 78
"""Bytes of a marker's batch."""


class Marker(NamedTuple):
    """The end of one transaction.

    `producer_epoch` is the epoch of the transaction's records up to transaction version 1, and a newer one from version
    2 on. `coordinator_epoch` is the leader epoch of the coordinator's partition.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


def build_marker_batch(marker: Marker, config: LogConfig, now_ms: int) -> CheckedBatch:
    """Build the batch of a marker, one control record; the header that is returned lacks the checksum."""
    kind = COMMIT if marker.is_commit else ABORT
    record = _RECORD.pack(b"\x20\0\0\0\x08", 0, kind, 0x0C, 0, marker.coordinator_epoch, 0)
    attributes = record_batch.TRANSACTIONAL | record_batch.CONTROL
    if config.message_timestamp_type == LOG_APPEND_TIME:
        attributes |= record_batch.LOG_APPEND_TIME
    header = BatchHeader(
        base_offset=0,
        length=MARKER_BYTES - LENGTH_END,
        partition_leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        base_sequence=-1,
        record_count=1,
    )
    return CheckedBatch(header, (memoryview(assemble_batch(header, record))[PATCHED_END:],))
