"""What consumers up to 0.8.1 keep in ZooKeeper."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import consumers

OFFSET = "/consumers/g/offsets/t/0"


def test_offsets() -> None:
    assert consumers.format_offset_path("g", "t", 0) == OFFSET
    assert consumers.format_offset_path("a/b", "t", 12) == "/consumers/a%2Fb/offsets/t/12"
    assert consumers.encode_consumer_offset(2**40) == b"1099511627776"
    assert consumers.decode_consumer_offset(OFFSET, b"1099511627776") == 2**40
    assert consumers.decode_consumer_offset(OFFSET, b"-1") == -1


@pytest.mark.parametrize("value", [b"", b"1.5", b" 1", b"1_000", b"9223372036854775808", b"\xff"])
def test_a_damaged_offset(value: bytes) -> None:
    with pytest.raises(StoreError, match=f"damaged at {OFFSET}: it is b"):
        consumers.decode_consumer_offset(OFFSET, value)
