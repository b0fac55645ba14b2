"""Record batches for tests, built by aiokafka's code instead of ours, which they test."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c

# An hour ago, on a whole second: retention deletes much older records while a test still reads them.
RECENT_MS = (int(time.time()) - 3600) * 1000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

_CRC_POSITION = 17
_CHECKED_FROM = 21


def build(
    values: Iterable[bytes | None],
    *,
    key: bytes | None = b"key",
    codec: int = 0,
    timestamp: int = RECENT_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    headers: Sequence[tuple[str, bytes]] = (),
) -> bytes:
    """Return one batch of these values, as a producer would send it (base offset 0)."""
    builder: Any = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=1 << 30,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=timestamp, key=key, value=value, headers=list(headers))
    return bytes(builder.build())


def patch_header(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """Return the batch with one header field overwritten and its CRC made right again."""
    changed = bytearray(batch)
    struct.pack_into(">" + layout, changed, position, value)
    return with_crc(changed)


def with_crc(batch: bytes | bytearray) -> bytes:
    """Return the batch with the CRC that its bytes have."""
    changed = bytearray(batch)
    struct.pack_into(">I", changed, _CRC_POSITION, crc32c(bytes(changed[_CHECKED_FROM:])))
    return bytes(changed)


def with_records(template: bytes, records: bytes) -> bytes:
    """Return the template's header in front of other record bytes, its length and CRC made right."""
    changed = bytearray(template[:61] + records)
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    return with_crc(changed)
