"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

import pytest

from kafkacompat.patterns import Pattern
from kafkacompat.timers import TURN_SECONDS
from kafkacompat.transactions.administration import TransactionFilters
from kafkacompat.transactions.state import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_ABORT
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.transactions.support import P0, TiringClock, World, is_waiting, take_response


def a_world() -> World:
    """Three transactional ids: new, open for 10 s, committed."""
    world = World()
    world.init("new")
    world.add(world.init("open"), ("u", 1), P0, ("t", 1), name="open")
    producer = world.init("done")
    world.add(producer, name="done")
    world.end(producer, name="done")
    world.clock.skip(10)
    return world


def list_transactions(world: World, filters: TransactionFilters | None = None) -> list[str]:
    transactions = take_response(world.coordinator.list(filters or TransactionFilters()))
    assert not isinstance(transactions, ErrorCode)
    return sorted(transaction.transactional_id for transaction in transactions)


def test_an_open_transaction_is_described() -> None:
    described = a_world().coordinator.describe("open")
    assert (described.error_code, described.transaction_state) == (0, "Ongoing")
    assert (described.producer_id, described.producer_epoch, described.transaction_timeout_ms) == (101, 0, 60_000)
    assert described.transaction_start_time_ms == 1_000_000_000
    assert [(topic.topic, topic.partitions) for topic in described.topics] == [("t", [0, 1]), ("u", [1])]


def test_an_unknown_transactional_id_is_not_described() -> None:
    world = a_world()
    names = {"unknown": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "": ErrorCode.INVALID_REQUEST}
    assert {name: world.coordinator.describe(name).error_code for name in names} == names


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (TransactionFilters(), ["done", "new", "open"]),
        (TransactionFilters(states={EMPTY, COMPLETE_COMMIT}), ["done", "new"]),
        (TransactionFilters(states={PREPARE_ABORT}), []),
        (TransactionFilters(states=set()), []),
        (TransactionFilters(producer_ids={100, 101}), ["new", "open"]),
        (TransactionFilters(duration_ms=9_999), ["done", "new", "open"]),
        (TransactionFilters(states={ONGOING}, duration_ms=9_999), ["open"]),
        (TransactionFilters(states={ONGOING}, duration_ms=10_000), []),
        (TransactionFilters(matches_name=Pattern("o|.*e.*").matches), ["done", "new", "open"]),
        (TransactionFilters(matches_name=Pattern("[no]e?.*w").matches), ["new"]),
        (TransactionFilters(matches_name=Pattern("e").matches), []),
    ],
)
def test_filters(filters: TransactionFilters, names: list[str]) -> None:
    assert list_transactions(a_world(), filters) == names


def test_listed_transactions_have_producer_and_state() -> None:
    transactions = take_response(a_world().coordinator.list(TransactionFilters(producer_ids={102})))
    assert not isinstance(transactions, ErrorCode)
    (transaction,) = transactions
    assert (transaction.transactional_id, transaction.producer_id, transaction.transaction_state) == (
        "done",
        102,
        "CompleteCommit",
    )


def test_a_long_list_leaves_others_their_turn() -> None:
    clock = TiringClock()
    world = World(clock=clock)
    for number in range(30):
        world.init(f"id{number}")
    clock.look_s = TURN_SECONDS / 10
    listing = world.coordinator.list(TransactionFilters())
    assert is_waiting(listing)
    world.turn(5)
    transactions = take_response(listing)
    assert not isinstance(transactions, ErrorCode) and len(transactions) == 30


def test_nothing_is_listed_while_something_is_not_known() -> None:
    log = FakeCoordinatorLog(partition_count=1)
    world = World(log)
    world.init()
    again = world.restarted(turns=0)
    assert take_response(again.coordinator.list(TransactionFilters())) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again.turn(2)
    assert list_transactions(again) == ["tx"]
    again.coordinator.stop()
    assert take_response(again.coordinator.list(TransactionFilters())) is ErrorCode.COORDINATOR_NOT_AVAILABLE
