"""What consumers up to 0.8.1 keep in ZooKeeper."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import consumers
from kafkacompat.metadata.znodes.consumers import ConsumerRegistration

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


def test_owners_and_registrations() -> None:
    owner = consumers.decode_consumer_owner("/consumers/g/owners/t/0", b"g_host-1700000000123-ab12cd34-0")
    assert owner == "g_host-1700000000123-ab12cd34-0"
    value = b'{"version":1,"subscription":{"t":2},"pattern":"white_list","timestamp":"1700000000123"}'
    assert consumers.decode_consumer("/consumers/g/ids/c", value) == ConsumerRegistration({"t": 2}, "white_list")
    assert consumers.decode_consumer("/consumers/g/ids/c", b'{"subscription":{"t":1}}').pattern == "static"
    with pytest.raises(StoreError, match="damaged at /consumers/g/ids/c: \"t\" is 'x'"):
        consumers.decode_consumer("/consumers/g/ids/c", b'{"subscription":{"t":"x"}}')
