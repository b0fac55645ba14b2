"""Preparing produced batches for a log: long work runs in a worker process, short work at once.

The functions keep no state between calls, so that any process can run them.
"""

from __future__ import annotations

from kafkacompat.storage.intake.validation import (
    PATCHED_END,
    CheckedBatch,
    TooLongForTurnError,
    change_timestamp,
    check_batch,
    choose_stored_codec,
    list_codec_levels,
)
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.conversion import SizeLimits, TargetCodec, is_compressed, is_message_set, up_convert
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import read_header

AT_ONCE_MESSAGES_BYTES = 32 * 1024
"""Bytes of uncompressed messages in one request that are converted at once."""


def convert_messages_at_once(messages: Buffer, config: LogConfig, now_ms: int, together_bytes: int) -> CheckedBatch:
    """Convert a message set to a batch and check it; `together_bytes` are the bytes of all sets in the request.

    Raises KafkaError as `up_convert` and `check_batch` do, and TooLongForTurnError if a worker process has to convert it.
    """
    if together_bytes > AT_ONCE_MESSAGES_BYTES or is_compressed(messages):
        raise TooLongForTurnError
    return check_batch(_batch_of(messages, config), config, now_ms, from_client=True)


def take_in(records: bytes, config: LogConfig, now_ms: int) -> bytes | None:
    """Check a batch or a message set and return the batch to store; None if it is `records` unchanged.

    Raises KafkaError as `up_convert` and `check_batch` do.
    """
    batch = _batch_of(records, config) if is_message_set(records) else records
    checked = check_batch(batch, config, now_ms, from_client=True)
    first = checked.parts[0]
    return None if isinstance(first, memoryview) and first.obj is records else checked.join_parts()


def as_checked_batch(batch: Buffer, now_ms: int) -> CheckedBatch:
    """Wrap a batch that a worker process has checked; one with LogAppendTime is stamped with `now_ms`."""
    view = memoryview(batch)
    header = read_header(view)
    if header.is_log_append_time:
        return change_timestamp(view, header, header.attributes, now_ms)
    return CheckedBatch(header, (view[PATCHED_END:],))


def _batch_of(messages: Buffer, config: LogConfig) -> bytes:
    target = TargetCodec(choose_stored_codec(config), list_codec_levels(config))
    return up_convert(messages, target, SizeLimits(config.max_message_bytes, config.max_decompressed_bytes))
