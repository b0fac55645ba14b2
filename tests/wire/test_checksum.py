"""The checksum is Castagnoli's."""

from __future__ import annotations

from kafkacompat.wire.checksum import crc32c


def test_the_check_value_of_the_polynomial() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_checksum_is_computed_in_parts() -> None:
    assert crc32c(memoryview(b"456789"), crc32c(b"123")) == crc32c(b"123456789")
