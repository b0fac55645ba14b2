"""Every partition gets its marker, however long that takes."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.timers import TURN_SECONDS
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.fakes.marked_partitions import FakePartition
from tests.kafkacompat.transactions.support import ID, NONE, P0, P1, TiringClock, World, take_response

OFFSETS = (OFFSETS_TOPIC, 3)

PASSING = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def complete_transaction(*partitions: tuple[str, int], commit: bool = True, world: World | None = None) -> World:
    """End a transaction in these partitions."""
    world = world or World()
    producer = world.init()
    assert world.add(producer, *partitions) is NONE
    assert world.end(producer, commit).error_code is NONE
    return world


@pytest.mark.parametrize("code", PASSING)
def test_a_marker_that_cannot_be_written_now_is_written_later(
    code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.refuse(P0, code)
    complete_transaction(P0, P1, world=world)
    assert world.markers(P1) == [(100, 0, True)]
    world.wait(600)
    assert world.state() == "PrepareCommit"
    world.refuse(P0, None)
    world.wait(10)
    assert world.markers(P0) == world.markers(P1) == [(100, 0, True)]
    assert world.state() == "CompleteCommit"
    (message,) = [line for line in caplog.messages if line.startswith("Retrying")]
    assert message == f"Retrying 1 markers of tx: {code.name}"


def test_only_a_partition_that_is_deleted_needs_no_marker() -> None:
    world = World()
    world.refuse(P0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    complete_transaction(P0, P1, world=world)
    world.wait(60)
    assert world.state() == "PrepareCommit"
    world.partitions.deleted.add(P0)
    world.wait(10)
    assert world.state() == "CompleteCommit"
    assert world.markers(P0) == []


def test_where_a_newer_epoch_writes_nothing_is_left_to_end() -> None:
    world = World()
    producer = world.init()
    world.add(producer, P0, P1)
    world.partitions.all[P0].write("x", 100, 9)
    world.end(producer)
    assert world.state() == "CompleteCommit"
    assert world.markers(P0) == []


def test_a_transaction_is_complete_when_the_log_says_so() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.partitions.all[P0].hold = True
    world.end(producer)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.partitions.all[P0].release()
    world.wait(60)
    assert world.state() == "PrepareCommit"
    assert world.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    world.log.refuse_with = None
    world.wait(10)
    assert world.state() == "CompleteCommit"
    assert world.markers() == [(100, 0, True)]


def test_many_markers_leave_others_their_turn() -> None:
    partitions = [("t", number) for number in range(30)]
    clock = TiringClock()
    world = World(clock=clock)
    producer = world.init()
    world.add(producer, *partitions)
    clock.look_s = TURN_SECONDS / 20
    assert world.end(producer).error_code is NONE
    assert 1 < sum(bool(world.markers(partition)) for partition in partitions) < 20
    world.turn(5)
    assert all(world.markers(partition) for partition in partitions)
    assert world.state() == "CompleteCommit"


@pytest.mark.parametrize("commit", [True, False])
def test_the_group_coordinator_learns_of_its_markers_when_they_are_there(commit: bool) -> None:
    world = World()
    world.partitions.all[OFFSETS].hold = True
    complete_transaction(P0, OFFSETS, commit=commit, world=world)
    assert world.ended == []
    world.partitions.all[OFFSETS].release()
    assert world.ended == [(3, 100, commit)]


# After a kill


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_a_decided_transaction_is_completed_by_the_next_coordinator(commit: bool, version: int) -> None:
    world = World()
    producer = world.init()
    world.add(producer, P0, P1, version=version)
    world.partitions.all[P1].hold = True
    answer = world.end(producer, commit, version=version)
    world.partitions.all[P1] = FakePartition()
    again = world.restarted()
    epoch = answer.producer.producer_epoch
    assert again.markers(P0) == [(100, epoch, commit)] * 2
    assert again.markers(P1) == [(100, epoch, commit)]
    assert [marker.coordinator_epoch for marker in again.partitions.all[P0].markers] == [0, 1]
    assert again.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert again.add(answer.producer, version=version) is NONE


def test_an_open_transaction_stays_open_until_its_timeout() -> None:
    world = World()
    producer = world.init()
    world.add(producer, P0)
    again = world.restarted()
    assert again.state() == "Ongoing"
    assert again.add(producer, P1) is NONE
    assert again.end(producer).error_code is NONE
    assert again.markers(P0) == again.markers(P1) == [(100, 0, True)]


def test_an_abandoned_transaction_is_aborted_after_a_kill() -> None:
    world = World()
    world.add(world.init(timeout_ms=30_000), P0)
    world.wait(20)
    again = world.restarted()
    again.wait(25)
    assert again.markers(P0) == [(100, 1, False)]


def test_a_complete_transaction_is_not_completed_again() -> None:
    world = complete_transaction(P0)
    again = world.restarted()
    again.wait(10)
    assert again.markers() == [(100, 0, True)]
    assert again.end(ProducerIdentity(100, 0)).error_code is NONE


def test_partitions_that_are_opened_later_get_their_markers() -> None:
    """While a broker starts, a partition may not be open yet. A missing partition is not always a deleted one."""
    world = World()
    world.partitions.all[P0].hold = True
    complete_transaction(P0, world=world)
    world.partitions.all[P0] = FakePartition()
    world.refuse(P0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    again = world.restarted()
    assert again.state() == "PrepareCommit"
    assert take_response(again.ask()).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    again.refuse(P0, None)
    again.wait(1)
    assert again.markers() == [(100, 0, True)]
    assert again.state() == "CompleteCommit"


def test_many_that_are_decided_leave_others_their_turn() -> None:
    clock = TiringClock()
    world = World(FakeCoordinatorLog(partition_count=1), clock=clock)
    names = [f"id{number}" for number in range(30)]
    world.partitions.all[P0].hold = True
    for name in names:
        producer = world.init(name)
        world.add(producer, name=name)
        world.end(producer, name=name)
    world.partitions.all[P0] = FakePartition()
    again = world.restarted(turns=0)
    assert {again.coordinator.describe(name).error_code for name in names} == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    clock.look_s = TURN_SECONDS / 50
    again.turn()
    assert 1 < sum(again.state(name) == "CompleteCommit" for name in names) < 20
    assert take_response(again.ask(names[-1])).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    again.turn(10)
    assert {again.state(name) for name in names} == {"CompleteCommit"}


def test_a_coordinator_that_resigned_writes_nothing_more() -> None:
    world = World()
    world.refuse(P0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    complete_transaction(P0, world=world)
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    world.refuse(P0, None)
    world.wait(60)
    assert world.markers() == []
    assert world.coordinator.describe(ID).error_code == ErrorCode.NOT_COORDINATOR


def test_a_failing_group_coordinator_does_not_block_the_completion(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    fails = [True]

    def end_transaction(*ended: Any) -> Deferred[ErrorCode]:
        if fails.pop() if fails else False:
            raise ZeroDivisionError
        return succeed(ErrorCode.NONE)

    world.coordinator.markers._end_transaction = end_transaction
    complete_transaction(OFFSETS, world=world)
    assert "Failed to write a transaction marker" in caplog.text
    world.wait(1)
    assert world.state() == "CompleteCommit"
