"""What a transaction coordinator has written at the end of a transaction to each of its partitions."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.storage.transaction_replay import ABORT, COMMIT
from kafkacompat.storage.validation import PATCHED_END, CheckedBatch, restamp
from kafkacompat.wire import record_batch
from kafkacompat.wire.record_batch import build_batch, read_header

_KEY = Struct(">hh")
"""Version, type."""
_VALUE = Struct(">hi")
"""Version, coordinator epoch."""

MARKER_BYTES = 78
"""The size of a marker's batch."""


class Marker(NamedTuple):
    """The end of one transaction.

    ``producer_epoch`` is that of the transaction's records up to transaction version 1, a newer one from version 2 on;
    ``coordinator_epoch`` is the leader epoch of the coordinator's partition.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


def marker_batch(marker: Marker, config: LogConfig, now_ms: int) -> CheckedBatch:
    """The batch of one control record that goes into the log."""
    key = _KEY.pack(0, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    batch = build_batch(
        [(now_ms, key, value, [])],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )
    view, header = memoryview(batch), read_header(batch)
    if config.message_timestamp_type == LOG_APPEND_TIME:
        return restamp(view, header, header.attributes | record_batch.LOG_APPEND_TIME, now_ms)
    return CheckedBatch(header, (view[PATCHED_END:],))
