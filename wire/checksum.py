"""The checksum of a record batch: CRC-32C, Castagnoli's polynomial."""

from __future__ import annotations

import crc32c as _crc32c

from kafkacompat.wire.primitives import Buffer


def crc32c(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32C of *data*, continuing from *value*, the CRC of the preceding bytes."""
    return _crc32c.crc32c(data, value)
