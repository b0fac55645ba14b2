"""Converts a log's messages of formats 0 and 1 to record batches that keep their offsets and timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kafkacompat.wire.batch_header import LOG_APPEND_TIME, MAGIC_V2, BatchHeader, assemble_batch
from kafkacompat.wire.batch_records import encode_record
from kafkacompat.wire.compression import compress
from kafkacompat.wire.message_set import LegacyMessage, unwrap_messages

MAX_MESSAGES_A_BATCH = 100
MAX_BATCH_BYTES = 16_384
"""The size at which a batch of messages that were not compressed together is complete."""


def convert_entries(entries: Iterable[LegacyMessage], max_decompressed_bytes: int) -> Iterator[bytes]:
    """Yield a batch for each wrapper, in its codec, and batches of the messages between them.

    Raises KafkaError and MalformedError if a wrapper is damaged, or larger than *max_decompressed_bytes* when uncompressed.
    """
    plain: list[LegacyMessage] = []
    size_bytes = 0
    for entry in entries:
        if plain and (entry.codec or size_bytes > MAX_BATCH_BYTES or not _fits_batch(plain, entry)):
            yield _build_batch(plain, 0)
            plain, size_bytes = [], 0
        if entry.codec:
            yield _build_batch(_unwrap_messages(entry, max_decompressed_bytes), entry.codec)
        else:
            plain.append(entry)
            size_bytes += len(entry.key or b"") + len(entry.value or b"")
    if plain:
        yield _build_batch(plain, 0)


def _fits_batch(messages: Sequence[LegacyMessage], entry: LegacyMessage) -> bool:
    """Return whether a message fits into a batch: a batch has one timestamp type, and one append time."""
    last = messages[-1]
    alike = (last.magic, last.is_log_append_time) == (entry.magic, entry.is_log_append_time)
    same_time = not entry.is_log_append_time or last.timestamp == entry.timestamp
    return alike and same_time and len(messages) < MAX_MESSAGES_A_BATCH


def _unwrap_messages(wrapper: LegacyMessage, max_bytes: int) -> Sequence[LegacyMessage]:
    messages = list(unwrap_messages(wrapper, max_bytes))
    # The wrapper has the offset of its last message; in format 1 the inner offsets count from the first message.
    shift = wrapper.offset - messages[-1].offset if wrapper.magic else 0
    return [message._replace(offset=message.offset + shift) for message in messages]


def _build_batch(messages: Sequence[LegacyMessage], codec: int) -> bytes:
    first, last = messages[0], messages[-1]
    records = (
        encode_record(
            message.offset - first.offset, first.timestamp, (message.timestamp, message.key, message.value, ())
        )
        for message in messages
    )
    header = BatchHeader(
        base_offset=first.offset,
        length=0,
        partition_leader_epoch=-1,
        magic=MAGIC_V2,
        crc=0,
        attributes=codec | (LOG_APPEND_TIME if first.is_log_append_time else 0),
        last_offset_delta=last.offset - first.offset,
        base_timestamp=first.timestamp,
        max_timestamp=max(message.timestamp for message in messages),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(messages),
    )
    return assemble_batch(header, compress(codec, b"".join(records)))
