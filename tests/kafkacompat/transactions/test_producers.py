"""InitProducerId for transactional ids."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.transactions.answers import NOBODY, ProducerAnswer
from kafkacompat.transactions.transaction import LAST_EPOCH, ProducerIdentity
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.transactions.support import ID, NONE, P0, P1, World, is_waiting, take_response

CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


def test_every_transactional_id_has_a_producer_id_of_its_own() -> None:
    world = World()
    assert world.init("a") == (100, 0)
    assert world.init("b") == (101, 0)
    assert world.init("a") == (100, 1)
    assert world.restarted().init("a") == (100, 2)


def test_another_request_while_one_is_on_its_way() -> None:
    world = World()
    world.log.hold = True
    first = world.ask()
    assert is_waiting(first)
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    world.log.held.pop().succeed()
    assert take_response(first).producer == (100, 0)


def test_two_at_once_while_ids_are_fetched() -> None:
    world = World()
    world.allocating = Deferred()
    first = world.ask()
    allocating, world.allocating = world.allocating, None
    assert world.init() == (100, 0)
    allocating.callback(99)
    assert take_response(first).producer == (100, 1)


def test_without_producer_ids_the_request_fails() -> None:
    world = World()
    world.no_producer_ids()
    assert take_response(world.ask()) == ProducerAnswer(ErrorCode.KAFKA_STORAGE_ERROR)
    world.allocating = None
    assert world.init() == (100, 0)


def test_a_refused_append_changes_no_producer() -> None:
    world = World()
    world.log.refuse_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert take_response(world.ask()) == ProducerAnswer(ErrorCode.NOT_COORDINATOR)
    assert world.coordinator.describe(ID).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    world.log.refuse_with = None
    producer = world.init()
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert take_response(world.ask()) == ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert world.coordinator.describe(ID).producer_epoch == producer.producer_epoch
    assert world.add(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.refuse_with = None
    assert world.add(producer) == NONE


def test_a_log_that_takes_too_long_is_not_waited_for_and_decides_all_the_same() -> None:
    world = World(request_timeout_ms=5000)
    world.log.hold = True
    asked = world.ask()
    world.wait(6)
    assert take_response(asked) == ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    world.log.hold = False
    world.log.held.pop().succeed()
    assert world.init() == (100, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_an_open_transaction_is_aborted_first(version: int) -> None:
    world = World(transaction_version=version)
    old = world.init()
    assert world.add(old, P0, P1) == NONE
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    assert world.markers(P0) == world.markers(P1) == [(100, 1, False)]
    assert world.state() == "CompleteAbort"
    new = world.init()
    assert new == (100, 2)
    assert world.end(old).error_code is ErrorCode.PRODUCER_FENCED
    assert world.add(old) is ErrorCode.PRODUCER_FENCED
    assert world.add(new) is NONE


def test_while_a_transaction_is_completed_there_is_no_new_epoch() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.partitions.all[P0].hold = True
    assert world.end(producer).error_code is NONE
    assert world.state() == "PrepareCommit"
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    world.partitions.all[P0].release()
    assert world.init() == (100, 1)


def make_exhausted(world: World) -> ProducerIdentity:
    """A producer in the last epoch of its producer id."""
    world.init()
    entry = world.coordinator._registry.by_id[ID]
    entry.current = entry.current._replace(producer_epoch=LAST_EPOCH)
    return entry.current.producer


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    world = World()
    old = make_exhausted(world)
    new = world.init(expected=old)
    assert new == (101, 0)
    assert world.init(expected=old) == new
    assert (
        take_response(world.ask(expected=ProducerIdentity(100, LAST_EPOCH - 1))).error_code is ErrorCode.PRODUCER_FENCED
    )


@pytest.mark.parametrize("version", [0, 2])
def test_fencing_in_the_last_epoch(version: int) -> None:
    world = World(transaction_version=version)
    old = make_exhausted(world)
    world.add(old)
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    assert world.markers() == [(100, LAST_EPOCH + 1, False)]
    assert world.init() == ((101, 1) if version == 2 else (101, 0))


def test_a_producer_id_that_is_not_needed_after_all_is_left() -> None:
    world = World()
    old = make_exhausted(world)
    world.allocating = Deferred()
    waiting = world.ask(expected=old)
    allocating, world.allocating = world.allocating, None
    assert world.init() == (101, 0)
    producer = world.init()
    world.add(producer)
    allocating.callback(500)
    assert take_response(waiting).error_code is ErrorCode.PRODUCER_FENCED
    assert take_response(world.ask()) == ProducerAnswer(CONCURRENT)
    assert world.init() == (101, 3)


def test_a_producer_with_another_identity_is_fenced() -> None:
    world = World()
    producer = world.init()
    assert take_response(world.ask(expected=ProducerIdentity(5, 0))) == ProducerAnswer(
        ErrorCode.PRODUCER_FENCED, NOBODY
    )
    assert world.init(expected=producer) == (100, 1)


def test_a_coordinator_of_nothing() -> None:
    world = World()
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    assert take_response(world.ask()) == ProducerAnswer(ErrorCode.NOT_COORDINATOR)
    world.coordinator.stop()
    assert take_response(world.ask()) == ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_change_that_is_decided_after_a_resignation() -> None:
    room = 10_000
    world = World(transactional_ids_max_bytes=room)
    other = world.init("other")
    world.log.hold = True
    asked = world.ask()
    added = world.coordinator.add_partitions("other", other, [P0, P1], 0)
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    for held in world.log.held:
        held.succeed()
    assert take_response(asked) == ProducerAnswer(ErrorCode.NOT_COORDINATOR)
    assert take_response(added) is ErrorCode.NOT_COORDINATOR
    assert world.coordinator._registry.budget.has_room(room)  # it is not counted among what is here
    world.log.hold = False
    assert world.restarted().init() == (101, 1)


def test_the_memory_of_all_transactional_ids_is_bounded() -> None:
    world = World(transactional_ids_max_bytes=2_000)
    full = ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producers = {name: world.init(name) for name in "abc"}
    assert take_response(world.ask("d")) == full
    assert world.init("a") == (100, 1)
    assert world.add(producers["b"], P0, name="b") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    world = World(transactional_ids_max_bytes=2_000)
    producer = world.init()
    many = [("t", number) for number in range(5)]
    for _ in range(3):
        assert world.add(producer, *many) is NONE
        assert take_response(world.ask("d")) == full
        assert world.end(producer).error_code is NONE
    assert world.init("d") == (101, 0)


def test_expired_transactional_ids_make_room() -> None:
    world = World(transactional_ids_max_bytes=2_000, transactional_id_expiration_ms=1000)
    for name in "abc":
        world.init(name)
    world.clock.advance(3600)
    for name in "def":
        world.init(name)
    again = world.restarted(transactional_ids_max_bytes=2_000)
    assert take_response(again.ask("g")).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    for partition in range(4):
        again.coordinator.on_resignation(partition)
    assert again.coordinator._registry.budget.has_room(2_000)
