"""Adding partitions to a transaction, verifying them, and ending it."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.registry import MAX_WAITING
from kafkacompat.transactions.transaction import LAST_EPOCH, ProducerIdentity, TopicPartition
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.transactions.support import ID, NONE, P0, P1, World, is_waiting, take_response
from tests.kafkacompat.transactions.test_producers import make_exhausted

ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
REFUSED = ErrorCode.INVALID_TXN_STATE


def verify(
    world: World, producer: ProducerIdentity, *partitions: TopicPartition, add: bool = False, name: str = ID
) -> dict[TopicPartition, ErrorCode] | Deferred[dict[TopicPartition, ErrorCode]]:
    return world.coordinator.verify(name, *producer, partitions or (P0,), add=add)


# Adding


def test_partitions_come_to_the_transaction() -> None:
    world = World()
    producer = world.init()
    assert world.add(producer, P0) is NONE
    written = len(world.log.records())
    assert world.add(producer, P0) is NONE
    assert len(world.log.records()) == written
    assert world.add(producer, P0, P1) is NONE
    (topic,) = world.coordinator.describe(ID).topics
    assert (topic.topic, topic.partitions) == ("t", [0, 1])


@pytest.mark.parametrize("add", [False, True])
def test_refused_producers_add_no_partitions(add: bool) -> None:
    world = World()
    world.init()
    assert world.add(ProducerIdentity(100, 0), name="unknown") is MAPPING
    assert world.add(ProducerIdentity(99, 0)) is MAPPING
    assert world.add(ProducerIdentity(100, 1)) is FENCED
    assert world.add(ProducerIdentity(100, 0), name="") is ErrorCode.INVALID_REQUEST
    for producer, code in [(ProducerIdentity(99, 0), MAPPING), (ProducerIdentity(100, 1), FENCED)]:
        assert take_response(verify(world, producer, P0, P1, add=add)) == {P0: code, P1: code}
    assert take_response(verify(world, ProducerIdentity(100, 0), add=add, name="unknown")) == {P0: MAPPING}
    assert take_response(verify(world, ProducerIdentity(100, 0), add=add, name="")) == {P0: ErrorCode.INVALID_REQUEST}


def test_one_change_at_a_time() -> None:
    world = World()
    producer = world.init()
    world.log.hold = True
    adding = world.coordinator.add_partitions(ID, producer, [P0], 0)
    assert is_waiting(adding)
    assert world.add(producer, P1) is CONCURRENT
    for version in (0, 2):
        assert world.end(producer, version=version) == ProducerAnswer(CONCURRENT)
    world.log.held.pop().succeed()
    assert take_response(adding) is NONE


def test_a_partition_whose_append_failed_is_not_in_the_transaction() -> None:
    world = World()
    producer = world.init()
    world.log.refuse_with = ErrorCode.KAFKA_STORAGE_ERROR
    assert world.add(producer) is ErrorCode.NOT_COORDINATOR
    assert world.state() == "Empty"
    world.log.refuse_with = None
    assert world.end(producer).error_code is REFUSED


# Verification


def test_a_partition_that_was_not_added_is_not_in_the_transaction() -> None:
    world = World()
    producer = world.init()
    assert verify(world, producer) == {P0: ABORTABLE}
    world.add(producer, P0)
    assert verify(world, producer, P0, P1) == {P0: NONE, P1: ABORTABLE}
    world.partitions.all[P0].hold = True
    world.end(producer)
    assert verify(world, producer, P0, P1) == {P0: CONCURRENT, P1: CONCURRENT}
    world.partitions.all[P0].release()
    assert verify(world, producer, P0, P1) == {P0: ABORTABLE, P1: ABORTABLE}


def test_records_may_bring_their_partition_with_them() -> None:
    world = World()
    producer = world.init()
    assert take_response(verify(world, producer, P0, P1, add=True)) == {P0: NONE, P1: NONE}
    assert world.end(producer, version=2).producer == (100, 1)
    assert world.markers(P0) == world.markers(P1) == [(100, 1, True)]


def test_records_wait_a_little_for_others_of_the_same_transaction() -> None:
    world = World()
    producer = world.init()
    world.log.hold = True
    first, second = (verify(world, producer, partition, add=True) for partition in (P0, P1))
    assert is_waiting(first) and is_waiting(second)
    world.log.held.pop().succeed()
    assert take_response(first) == {P0: NONE}
    world.log.held.pop().succeed()
    assert take_response(second) == {P1: NONE}
    (topic,) = world.coordinator.describe(ID).topics
    assert topic.partitions == [0, 1]


def test_records_do_not_wait_for_long() -> None:
    world = World()
    producer = world.init()
    world.log.hold = True
    first, second = (verify(world, producer, partition, add=True) for partition in (P0, P1))
    world.clock.advance(0.11)
    assert take_response(second) == {P1: CONCURRENT}
    world.log.held.pop().succeed()
    assert take_response(first) == {P0: NONE}


def test_the_next_transaction_waits_a_little_for_the_last_to_be_complete() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.partitions.all[P0].hold = True
    world.end(producer)
    adding = world.coordinator.add_partitions(ID, producer, [P1], 0)
    assert is_waiting(adding)
    world.partitions.all[P0].release()
    assert take_response(adding) is NONE


def test_the_number_of_waiting_requests_is_limited() -> None:
    world = World()
    producer = world.init()
    world.log.hold = True
    world.coordinator.add_partitions(ID, producer, [P0], 0)
    waiting = [world.coordinator.add_partitions(ID, producer, [P1], 0) for _ in range(MAX_WAITING)]
    assert all(map(is_waiting, waiting))
    assert take_response(world.coordinator.add_partitions(ID, producer, [P1], 0)) is CONCURRENT
    world.log.hold = False
    world.log.held.pop().succeed()
    assert {take_response(answer) for answer in waiting} == {NONE}


def test_records_that_wait_learn_of_a_resignation() -> None:
    world = World()
    producer = world.init()
    world.log.hold = True
    verify(world, producer, P0, add=True)
    second = verify(world, producer, P1, add=True)
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    assert take_response(second) == {P1: ErrorCode.NOT_COORDINATOR}


# The end


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_of_old_ends_in_its_epoch(commit: bool) -> None:
    world = World()
    producer = world.init()
    world.add(producer, P0, P1)
    assert world.end(producer, commit) == ProducerAnswer(NONE, producer)
    assert world.markers(P0) == world.markers(P1) == [(100, 0, commit)]
    assert world.partitions.all[P0].markers[0].transaction_version == 0
    assert world.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert world.end(producer, commit) == ProducerAnswer(NONE, producer)
    assert world.end(producer, not commit).error_code is REFUSED
    assert world.add(producer, P1) is NONE
    assert world.end(producer, not commit).error_code is NONE
    assert world.markers(P0) == [(100, 0, commit)]
    assert world.markers(P1) == [(100, 0, commit), (100, 0, not commit)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_with_an_epoch_of_its_own(commit: bool) -> None:
    world = World()
    producer = world.init()
    world.add(producer, version=2)
    next_producer = ProducerIdentity(100, 1)
    assert world.end(producer, commit, version=2) == ProducerAnswer(NONE, next_producer)
    assert world.markers() == [(100, 1, commit)]
    assert world.partitions.all[P0].markers[0].transaction_version == 2
    assert world.end(producer, commit, version=2) == ProducerAnswer(NONE, next_producer)
    assert world.end(producer, not commit, version=2).error_code is REFUSED
    assert world.add(producer, version=2) is FENCED
    assert world.add(next_producer, version=2) is NONE
    assert world.end(producer, commit, version=2).error_code is FENCED


def test_with_own_epochs_nothing_may_be_aborted_too() -> None:
    world = World()
    producer = world.init()
    assert world.end(producer, True, version=2).error_code is REFUSED
    for epoch in (1, 2, 3):
        answer = world.end(producer, False, version=2)
        assert answer == ProducerAnswer(NONE, ProducerIdentity(100, epoch))
        producer = answer.producer
    assert world.state() == "CompleteAbort"


def test_without_own_epochs_there_is_nothing_to_end_before_the_first_partition() -> None:
    world = World()
    producer = world.init()
    assert [world.end(producer, commit).error_code for commit in (True, False)] == [REFUSED, REFUSED]


def test_whose_end_is_not_heard() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    for version in (0, 2):
        assert world.end(producer, name="unknown", version=version).error_code is MAPPING
        assert world.end(producer, name="", version=version).error_code is ErrorCode.INVALID_REQUEST
        assert world.end(ProducerIdentity(100, 5), version=version).error_code is FENCED
        assert world.end(ProducerIdentity(5, 0), version=version).error_code is MAPPING
    assert world.state() == "Ongoing"


def test_an_end_that_is_not_in_the_log_is_none() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.end(producer) == ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert world.state() == "Ongoing"
    assert world.markers() == []
    world.log.refuse_with = None
    assert world.end(producer, False).error_code is NONE


def test_the_answer_waits_for_the_log_and_the_markers_do_too() -> None:
    world = World()
    producer = world.init()
    world.add(producer)
    world.log.hold = True
    ending = world.ending(producer)
    assert is_waiting(ending)
    assert world.markers() == []
    world.log.held.pop().succeed()
    assert take_response(ending).error_code is NONE
    assert world.markers() == [(100, 0, True)]


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    world = World()
    producer = make_exhausted(world)
    world.add(producer, version=2)
    world.no_producer_ids()
    assert world.end(producer, version=2).error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.state() == "Ongoing"
    world.allocating = None
    answer = world.end(producer, version=2)
    assert answer == ProducerAnswer(NONE, ProducerIdentity(101, 0))
    assert world.markers() == [(100, LAST_EPOCH + 1, True)]
    assert world.end(producer, version=2) == answer
    again = world.restarted()
    assert again.end(producer, version=2) == answer
    assert again.add(answer.producer, version=2) is NONE


def test_appends_that_wait_in_the_same_partition_complete_without_nesting() -> None:
    """Many appends may end at the same moment, after a new segment. Their outcomes must not nest."""
    world = World(FakeCoordinatorLog(partition_count=1))
    producers = {f"id{number}": world.init(f"id{number}") for number in range(200)}
    for name, producer in producers.items():
        world.add(producer, name=name)
    world.log.hold = True
    ends = [world.ending(producer, name=name) for name, producer in producers.items()]
    following = [world.coordinator.add_partitions(name, producer, [P0], 0) for name, producer in producers.items()]
    world.log.hold = False
    for held in world.log.held:
        held.succeed()
    assert {take_response(answer).error_code for answer in ends} == {NONE}
    assert {take_response(answer) for answer in following} == {NONE}
    assert {world.state(name) for name in producers} == {"Ongoing"}
