"""Record batches of format version 2: one module to import everything from."""

from __future__ import annotations

from kafkacompat.wire.batch_check import (
    BATCHES_FROM_PRODUCE_VERSION,
    SMALLEST_RECORD_BYTES,
    InvalidRecordsError,
    check_produce_version,
    check_records,
)
from kafkacompat.wire.batch_header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL,
    CRC_END,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC_V2,
    TRANSACTIONAL,
    BatchHeader,
    assemble_batch,
    crc_matches,
    read_header,
    split_batches,
)
from kafkacompat.wire.batch_records import NewRecord, Record, build_batch, read_body, read_records, recompress_batch

__all__ = [
    "ATTRIBUTES_POSITION",
    "BATCHES_FROM_PRODUCE_VERSION",
    "CODEC_MASK",
    "CONTROL",
    "CRC_END",
    "DELETE_HORIZON",
    "HEADER_SIZE",
    "LENGTH_END",
    "LOG_APPEND_TIME",
    "MAGIC_V2",
    "SMALLEST_RECORD_BYTES",
    "TRANSACTIONAL",
    "BatchHeader",
    "InvalidRecordsError",
    "NewRecord",
    "Record",
    "assemble_batch",
    "build_batch",
    "check_produce_version",
    "check_records",
    "crc_matches",
    "read_body",
    "read_header",
    "read_records",
    "recompress_batch",
    "split_batches",
]
