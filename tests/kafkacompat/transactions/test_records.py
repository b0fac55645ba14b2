"""The records of `__transaction_state`, byte by byte as Kafka 4.3 writes them."""

from __future__ import annotations

import pytest

from kafkacompat.transactions.records import (
    read_transaction,
    read_transactional_id,
    transaction_record,
    transaction_tombstone,
)
from kafkacompat.transactions.state import EMPTY, ONGOING, PREPARE_COMMIT
from kafkacompat.transactions.transaction import TransactionMetadata
from kafkacompat.wire.primitives import MalformedError
from tests.kafkacompat.transactions.support import World

KEY = bytes.fromhex("0000 0002 7478")
NEW = TransactionMetadata(1, 0, 60_000, EMPTY, last_update_ms=1000, previous_producer_id=1)
OPEN = TransactionMetadata(
    1,
    5,
    60_000,
    ONGOING,
    frozenset({("t", 1), ("t", 0), ("u", 0)}),
    999,
    1000,
    previous_producer_id=1,
    client_version=2,
)


def test_an_empty_one() -> None:
    key, value = transaction_record("tx", NEW, 0)
    assert key == KEY
    expected = "0000 0000000000000001 0000 0000ea60 00 ffffffff 00000000000003e8 ffffffffffffffff"
    assert value == bytes.fromhex(expected)
    # With an unsigned varint for the null array, and the tagged previous producer id.
    _, flexible = transaction_record("tx", NEW, 1)
    expected = "0001 0000000000000001 0000 0000ea60 00 00 00000000000003e8 ffffffffffffffff 01 00 08 0000000000000001"
    assert flexible == bytes.fromhex(expected)


def test_an_open_one() -> None:
    _, value = transaction_record("tx", OPEN, 0)
    partitions = "00000002 0001 74 00000002 00000000 00000001 0001 75 00000001 00000000"
    expected = f"0000 0000000000000001 0005 0000ea60 01 {partitions} 00000000000003e8 00000000000003e7"
    assert value == bytes.fromhex(expected)


def test_a_tombstone() -> None:
    assert transaction_tombstone("tx") == (KEY, None)
    assert read_transactional_id(KEY) == "tx"


@pytest.mark.parametrize(
    "transaction", [NEW, OPEN, OPEN._replace(state=PREPARE_COMMIT, next_producer_id=9, producer_epoch=0x7FFF)]
)
def test_version_1_says_everything_but_the_last_epoch(transaction: TransactionMetadata) -> None:
    _, value = transaction_record("tx", transaction._replace(last_producer_epoch=3), 1)
    assert value is not None
    assert read_transaction(value) == transaction


def test_version_0_lacks_the_next_producer_id() -> None:
    _, value = transaction_record("tx", OPEN._replace(next_producer_id=9), 0)
    assert value is not None
    assert read_transaction(value) == OPEN._replace(previous_producer_id=-1, client_version=0)


def test_foreign_records_are_refused() -> None:
    assert read_transactional_id(bytes.fromhex("0001 0002 7478")) is None
    for key in (b"", b"\0", b"\0\0\0\x09x"):
        with pytest.raises(MalformedError):
            read_transactional_id(key)
    _, value = transaction_record("tx", NEW, 0)
    assert value is not None
    for bad in (
        b"",
        b"\0",
        b"\0\2" + value[2:],
        value[:-1],
        *(value[:16] + bytes([state]) + value[17:] for state in (6, 7, 8)),
    ):
        with pytest.raises(MalformedError):
            read_transaction(bad)


@pytest.mark.parametrize(("level", "version"), [(0, 0), (2, 1)])
def test_with_an_old_transaction_version_records_are_readable_by_older_kafkas(level: int, version: int) -> None:
    world = World(transaction_version=level)
    producer = world.init()
    world.add(producer, version=2)
    world.end(producer, version=2)
    values = [record.value for record in world.log.records()]
    assert {bytes(value or b"")[:2] for value in values} == {version.to_bytes(2, "big")}
    assert len(values) == 4
