"""The transactional ids of a coordinator after a start."""

from __future__ import annotations

import logging

import pytest

from kafkacompat.coordination.replay import RECORDS_A_TURN
from kafkacompat.transactions.records import transaction_record
from kafkacompat.transactions.state import COMPLETE_COMMIT, EMPTY, ONGOING, TransactionState
from kafkacompat.transactions.transaction import TransactionMetadata
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.transactions.support import ID, P0, World, take_response


def make_record(state: TransactionState = EMPTY, name: str = ID, **changes: int) -> tuple[bytes, bytes | None]:
    partitions = frozenset({P0}) if state is ONGOING else frozenset()
    transaction = TransactionMetadata(7, 3, 1000, state, partitions, 1, 2, previous_producer_id=7)
    return transaction_record(name, transaction._replace(**changes), 1)  # type: ignore[arg-type]


def load_world(*records: tuple[bytes | None, bytes | None], turns: int = 5) -> World:
    log = FakeCoordinatorLog(partition_count=1)
    for key, value in records:
        log.store(0, build_batch([(0, key, value, ())]))
    return World(log, turns=turns)


def test_the_last_record_counts() -> None:
    world = load_world(make_record(ONGOING), make_record(COMPLETE_COMMIT, producer_epoch=4))
    assert world.state() == "CompleteCommit"
    assert world.init() == (7, 5)


def test_a_tombstone_forgets() -> None:
    world = load_world(make_record(), (make_record()[0], None), make_record(name="other"), (b"\0\0\0\x01z", None))
    assert world.coordinator.describe(ID).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.init("other") == (7, 4)


def test_records_that_cannot_be_read_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    key, value = make_record(ONGOING)
    assert value is not None
    newer_version, unknown_state = b"\0\2" + value[2:], value[:16] + b"\x09" + value[17:]
    world = load_world((key, value), (b"\0\7abc", b"x"), (None, b"x"), (key, newer_version), (key, unknown_state))
    assert world.state() == "Ongoing"
    assert sorted(message for message in caplog.messages if "left out" in message) == [
        "__coordinated-0: left out 1 records: TransactionLogValue has no version 2",
        "__coordinated-0: left out 1 records: a record of 0 bytes has no room for its version",
        "__coordinated-0: left out 1 records: there is no transaction state 9",
        "__coordinated-0: left out 1 records: unknown version of the key",
    ]
    assert "__coordinated-0: loaded 5 records, 1 transactional ids" in caplog.messages


def test_control_batches_are_passed_over() -> None:
    log = FakeCoordinatorLog(partition_count=1)
    log.store(0, build_batch([(0, *make_record(), ())]))
    marker = build_batch(
        [(0, b"\0\0\0\0", bytes(6), ())], producer_id=1, producer_epoch=0, transactional=True, control=True
    )
    log.store(0, marker)
    assert World(log).init() == (7, 4)


def test_until_everything_is_read_nothing_is_known() -> None:
    records = [make_record(name=f"id{number}") for number in range(RECORDS_A_TURN + 1)]
    world = load_world(*records, turns=1)
    assert take_response(world.ask("id0")).error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.coordinator.describe("id0").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.turn(2)
    assert world.init("id0") == (7, 4)


def test_a_partition_that_cannot_be_read_has_no_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    log = FakeCoordinatorLog(partition_count=1)
    log.batches[0].append(b"no batch at all")
    world = World(log)
    assert take_response(world.ask()).error_code is ErrorCode.NOT_COORDINATOR
    assert "Failed to load __coordinated-0" in caplog.text


def test_a_resignation_ends_the_reading() -> None:
    world = load_world(*[make_record(name=f"id{number}") for number in range(RECORDS_A_TURN + 1)], turns=1)
    world.coordinator.on_resignation(0)
    world.turn(3)
    assert take_response(world.ask("id0")).error_code is ErrorCode.NOT_COORDINATOR
    world.coordinator.on_election(0, 2)
    world.turn(3)
    assert world.init("id0") == (7, 4)
