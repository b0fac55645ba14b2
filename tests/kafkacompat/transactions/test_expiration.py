"""Transactions that are open for too long are aborted, and unused transactional ids are forgotten."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.timers import TURN_SECONDS
from kafkacompat.transactions.expiration import TOMBSTONES_BYTES
from kafkacompat.transactions.transaction import LAST_EPOCH, ProducerIdentity
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import read_records
from tests.kafkacompat.transactions.support import ID, NONE, P0, TiringClock, World, take_response
from tests.kafkacompat.transactions.test_producers import make_exhausted

HOUR_S = 3600


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_is_open_for_too_long_is_aborted(version: int) -> None:
    world = World(transaction_version=version)
    producer = world.init(timeout_ms=15_000)
    world.add(producer)
    world.wait(15)
    assert world.state() == "Ongoing"
    world.wait(10)
    assert world.state() == "CompleteAbort"
    assert world.markers() == [(100, 1, False)]
    assert world.end(producer).error_code is ErrorCode.PRODUCER_FENCED
    assert world.add(producer) is ErrorCode.PRODUCER_FENCED


def test_a_client_with_own_epochs_learns_of_the_abort_and_goes_on() -> None:
    world = World()
    producer = world.init(timeout_ms=1000)
    world.add(producer, version=2)
    world.wait(20)
    assert world.end(producer, True, version=2).error_code is ErrorCode.INVALID_TXN_STATE
    assert world.end(producer, False, version=2).producer == (100, 1)


def test_more_partitions_do_not_give_a_transaction_more_time() -> None:
    world = World()
    producer = world.init(timeout_ms=15_000)
    world.add(producer)
    world.wait(9)
    world.add(producer, ("t", 5))
    world.wait(12)
    assert world.state() == "CompleteAbort"


def test_a_transaction_without_timeout_is_never_aborted() -> None:
    world = World()
    producer = world.init(timeout_ms=0x7FFFFFFF)
    world.add(producer)
    world.clock.advance(40 * 24 * HOUR_S)
    world.wait(20)
    assert world.state() == "Ongoing"


def test_an_abort_that_is_not_in_the_log_is_tried_again() -> None:
    world = World()
    world.add(world.init(timeout_ms=1000))
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.wait(30)
    assert world.state() == "Ongoing"
    world.log.refuse_with = None
    world.wait(10)
    assert world.markers() == [(100, 1, False)]


def test_a_transaction_that_is_changing_is_left_to_itself() -> None:
    world = World()
    producer = world.init(timeout_ms=1000)
    world.add(producer)
    world.log.hold = True
    ending = world.ending(producer)
    world.wait(20)
    world.log.hold = False
    world.log.held.pop().succeed()
    assert take_response(ending).error_code is NONE
    assert world.markers() == [(100, 0, True)]


def test_an_abort_in_the_last_epoch_brings_another_producer_id(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.add(make_exhausted(world))
    world.no_producer_ids()
    world.wait(80)
    assert world.state() == "Ongoing"
    assert "Failed to check the transactional ids" in caplog.text
    world.allocating = None
    world.wait(10)
    assert world.markers() == [(100, LAST_EPOCH + 1, False)]
    assert world.init() == (101, 1)


def test_a_transaction_that_ends_during_an_allocation_is_not_aborted() -> None:
    world = World()
    producer = make_exhausted(world)
    world.add(producer)
    allocating = world.allocating = Deferred()
    world.wait(80)
    assert world.end(producer).error_code is NONE
    allocating.callback(500)
    assert (world.state(), world.markers()) == ("CompleteCommit", [(100, LAST_EPOCH, True)])


def test_an_unused_transactional_id_is_forgotten() -> None:
    world = World(transactional_id_expiration_ms=5 * HOUR_S * 1000)
    for name in ("used", "unused", "open"):
        producer = world.init(name, timeout_ms=0x7FFFFFFF)
        if name == "open":
            world.add(producer, name=name)
    for _ in range(3):
        world.clock.advance(2 * HOUR_S)
        world.init("used")
    states = [world.coordinator.describe(name).error_code for name in ("used", "unused", "open")]
    assert states == [0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, 0]
    (tombstone,) = [record for record in world.log.records() if record.value is None]
    assert tombstone.key == b"\0\0\0\x06unused"
    again = world.restarted()
    assert again.coordinator.describe("unused").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert again.init("unused") == ProducerIdentity(103, 0)


def test_ids_are_forgotten_in_batches_once_their_tombstones_are_in_the_log() -> None:
    world = World(transactional_id_expiration_ms=1000)
    names = [f"{number}".zfill(TOMBSTONES_BYTES // 3) for number in range(40)]
    for name in names:
        world.init(name)
    world.log.hold = True
    world.clock.advance(HOUR_S)
    codes = {take_response(world.ask(name)).error_code for name in names}
    assert codes == {ErrorCode.CONCURRENT_TRANSACTIONS}
    assert {world.coordinator.describe(name).error_code for name in names} == {NONE}
    held = world.log.held
    assert sum(len(list(read_records(append.batch))) for append in held) == 40
    assert max(len(list(read_records(append.batch))) for append in held) == 3
    for append in held[1:]:
        append.succeed()
    held[0].fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    left = [name for name in names if not world.coordinator.describe(name).error_code]
    assert len(left) == 3
    world.log.hold = False
    world.clock.advance(HOUR_S)
    assert not [name for name in names if not world.coordinator.describe(name).error_code]


def test_many_that_are_open_for_too_long_leave_others_their_turn() -> None:
    clock = TiringClock()
    world = World(clock=clock)
    names = [f"id{number}" for number in range(30)]
    for name in names:
        world.add(world.init(name, timeout_ms=1000), name=name)
    clock.skip(20)
    clock.look_s = TURN_SECONDS / 50
    world.turn()
    assert 1 < sum(world.state(name) == "CompleteAbort" for name in names) < 20
    world.turn(10)
    assert {world.state(name) for name in names} == {"CompleteAbort"}


def test_of_a_partition_that_is_made_again_meanwhile_nothing_is_forgotten() -> None:
    clock = TiringClock()
    world = World(clock=clock, transactional_id_expiration_ms=1000)
    names = [f"id{number}" for number in range(30)]
    for name in names:
        world.init(name)
    clock.skip(2 * HOUR_S)
    clock.look_s = TURN_SECONDS / 10
    world.turn()
    clock.look_s = 0
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    world.log.batches.clear()
    for partition in range(4):
        world.coordinator.on_election(partition, 9)
    for name in names:
        world.init(name)
    world.turn(5)
    assert not [record for record in world.log.records() if record.value is None]


def test_after_a_stop_nothing_is_done() -> None:
    world = World()
    world.add(world.init(timeout_ms=1000))
    world.coordinator.stop()
    world.wait(60)
    assert world.markers() == []
    assert world.coordinator.describe(ID).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not world.clock.getDelayedCalls()


def test_markers_that_wait_end_with_the_coordinator() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.refuse(P0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.end(producer)
    world.coordinator.stop()
    world.wait(10)
    assert not world.clock.getDelayedCalls()


def test_a_coordinator_that_resigned_writes_nothing_more() -> None:
    world = World()
    world.add(make_exhausted(world))
    allocating = world.allocating = Deferred()
    world.wait(80)
    written = len(world.log.records())
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    allocating.callback(500)
    assert len(world.log.records()) == written
