"""The rows of a log file: its batches, and with deep iteration their records."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.storage.files.filesystem import File
from kafkacompat.storage.inspection.rows import DumpOptions, DumpRow, decode_text, make_problem_row
from kafkacompat.storage.producers.producer import sequence_after
from kafkacompat.storage.segment.walk import Bounds, Stretch, walk_log_file
from kafkacompat.wire.batch_header import DELETE_HORIZON, LOG_APPEND_TIME
from kafkacompat.wire.compression import DEFAULT_MAX_BYTES, Codec
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.message_set import LegacyMessage, read_message_set, unwrap_messages
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import CODEC_MASK, BatchHeader, Record, read_records

CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_END_MARKERS = ("ABORT", "COMMIT")


def log_rows(file: File, size_bytes: int, base_offset: int, options: DumpOptions) -> Iterator[DumpRow]:
    """Yield a row for every batch of the first `size_bytes`, and a problem for damage."""
    limit = min(size_bytes, options.max_bytes)
    for stretch in walk_log_file(file, Bounds(size_bytes), base_offset):
        if stretch.end > limit:
            return
        row = _batch_row(stretch)
        if row is not None:
            yield row
        if stretch.problem:
            yield make_problem_row(_describe_damage(stretch))
        elif options.deep_iteration:
            yield from _record_rows(file, stretch, options)


def _describe_damage(stretch: Stretch) -> str:
    last = f"to {stretch.last_offset}" if stretch.last_offset >= 0 else "on"
    bytes_named = f"bytes {stretch.position} to {stretch.end - 1}"
    return f"{bytes_named} are no sound batch: {stretch.problem}; this concerns offsets {stretch.base_offset} {last}"


def _batch_row(stretch: Stretch) -> DumpRow | None:
    header = stretch.header
    if header is None and stretch.problem:
        return None
    fields = _header_fields(header) if header is not None else {"offset": stretch.last_offset}
    codec = stretch.attributes & CODEC_MASK
    fields |= {
        "position": stretch.position,
        "timestampType": timestamp_type(stretch),
        "timestamp": stretch.max_timestamp,
        "size": stretch.size_bytes,
        "magic": stretch.magic,
        "compresscodec": Codec(codec).name.lower() if codec in list(Codec) else str(codec),
        "crc": stretch.crc,
        "isvalid": not stretch.problem,
    }
    return DumpRow("batch" if header is not None else "message", fields)


def _header_fields(header: BatchHeader) -> dict[str, object]:
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": _find_sequence(header, header.last_offset_delta),
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if header.attributes & DELETE_HORIZON else None,
    }


def _find_sequence(header: BatchHeader, offset_delta: int) -> int:
    return header.base_sequence if header.base_sequence < 0 else sequence_after(header.base_sequence, offset_delta)


def timestamp_type(stretch: Stretch) -> str:
    """Return CreateTime, LogAppendTime, or NoTimestampType in format 0."""
    if stretch.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if stretch.attributes & LOG_APPEND_TIME else "CreateTime"


def _record_rows(file: File, stretch: Stretch, options: DumpOptions) -> Iterator[DumpRow]:
    try:
        for record in stretch_records(file, stretch):
            fields = {} if options.skip_record_metadata else _list_metadata(record, stretch)
            if options.decoder is not None and not (stretch.header and stretch.header.is_control):
                key, payload = options.decoder(record)
                fields |= {"key": key, "payload": payload}
                if not options.skip_record_metadata:
                    fields["headers"] = [
                        (name, None if value is None else decode_text(value)) for name, value in record.headers
                    ]
            if fields:
                yield DumpRow("record", fields)
    except (MalformedError, KafkaError) as error:
        yield make_problem_row(f"the records of the batch at position {stretch.position} cannot be read: {error}")


def _list_metadata(record: Record, stretch: Stretch) -> dict[str, object]:
    header = stretch.header
    fields: dict[str, object] = {
        "offset": record.offset,
        "timestampType": timestamp_type(stretch),
        "timestamp": record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
    }
    if header is not None:
        fields["sequence"] = _find_sequence(header, record.offset - header.base_offset)
        fields["headerKeys"] = [name for name, _ in record.headers]
        if header.is_control:
            fields |= _control_fields(record)
    return fields


def _control_fields(record: Record) -> dict[str, object]:
    kind = int.from_bytes((record.key or b"")[2:4], "big")
    name = CONTROL_TYPES.get(kind, f"UNKNOWN({kind})")
    if name not in _END_MARKERS:
        return {"controlType": name}
    return {"endTxnMarker": name, "coordinatorEpoch": int.from_bytes((record.value or b"")[2:6], "big", signed=True)}


def stretch_records(file: File, stretch: Stretch) -> Iterator[Record]:
    """Yield the records of a sound stretch of any format. Raises MalformedError or KafkaError for malformed records."""
    data = file.pread(stretch.size_bytes, stretch.position)
    if stretch.header is not None:
        return read_records(data)
    return _read_messages(data)


def _read_messages(data: bytes) -> Iterator[Record]:
    for outer in read_message_set(data):
        if not outer.codec:
            yield _as_record(outer, outer.offset)
            continue
        inner = list(unwrap_messages(outer, DEFAULT_MAX_BYTES))
        # In format 1, inner offsets count from the first message, and the wrapper has the offset of the last.
        shift = outer.offset - inner[-1].offset if outer.magic else 0
        for message in inner:
            yield _as_record(message, message.offset + shift)


def _as_record(message: LegacyMessage, offset: int) -> Record:
    return Record(offset, message.timestamp, message.key, message.value, [])
