"""TxnOffsetCommit: offsets that become visible when a transaction is committed."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import read_header
from tests.kafkacompat.groups.producers import PRODUCER, LateLog, ProducerWorld
from tests.kafkacompat.groups.support import DELAY_S, GROUP, TOPIC_ID, is_waiting, take_response

NONE = ErrorCode.NONE
OTHER = PRODUCER + 1


@pytest.mark.parametrize(
    ("story", "request_", "code"),
    [
        ("nothing", {}, NONE),
        ("nothing", {"member_id": "x"}, NONE),
        ("nothing", {"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ("empty", {}, NONE),
        ("empty", {"member_id": "x"}, NONE),
        ("empty", {"generation": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("form", {"member_id": "it", "generation": 1}, NONE),
        ("form", {}, NONE),
        ("stable", {"member_id": "it", "generation": 1}, NONE),
        ("stable", {}, NONE),
        ("stable", {"generation": -2}, NONE),
        ("stable", {"member_id": "it"}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "it", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "it", "generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "x", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stable", {"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stable", {"instance": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("rebalance", {"member_id": "it", "generation": 1}, NONE),
        ("rebalance", {}, NONE),
    ],
)
def test_transactional_commits_are_checked_by_member_and_state(
    story: str, request_: dict[str, Any], code: ErrorCode
) -> None:
    world = ProducerWorld()
    assert take_response(world.commit_in_transaction(**world.play(story, request_))) == [code]
    assert world.is_unstable() is (not code)
    take_response(world.end())
    assert world.committed() == (-1 if code else 7)


def test_a_static_member_that_was_replaced_is_fenced() -> None:
    world = ProducerWorld()
    joined = world.join(instance="i")
    world.clock.advance(DELAY_S)
    member_id = take_response(joined).member_id
    code = take_response(world.commit_in_transaction(member_id="older", instance="i", generation=1))
    assert code == [ErrorCode.FENCED_INSTANCE_ID]
    assert take_response(world.commit_in_transaction(member_id=member_id, instance="i", generation=1)) == [NONE]


def test_a_commit_keeps_no_session() -> None:
    world = ProducerWorld()
    (member_id,) = world.stable()
    world.clock.advance(9)
    take_response(world.commit_in_transaction(member_id=member_id, generation=1))
    world.clock.advance(1)
    assert world.state() == "Empty"


def test_metadata_has_its_bound() -> None:
    codes = take_response(ProducerWorld().commit_in_transaction(metadata="x" * 4097))
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


# Pending offsets


def test_an_offset_counts_from_the_marker_on() -> None:
    world = ProducerWorld()
    world.commit(1)
    take_response(world.commit_in_transaction(2))
    assert (world.committed(), world.is_unstable()) == (1, True)
    assert take_response(world.end()) is NONE
    assert (world.committed(), world.is_unstable()) == (2, False)


def test_an_aborted_offset_never_counts() -> None:
    world = ProducerWorld()
    world.commit(1)
    take_response(world.commit_in_transaction(2))
    take_response(world.end(is_commit=False))
    assert (world.committed(), world.is_unstable()) == (1, False)


def test_the_last_of_a_transaction_counts_and_each_transaction_is_its_own() -> None:
    world = ProducerWorld()
    for offset, producer_id, partition in [(1, PRODUCER, 0), (2, PRODUCER, 0), (3, OTHER, 1), (4, PRODUCER, 1)]:
        take_response(world.commit_in_transaction(offset, producer_id, partition=partition))
    take_response(world.end(PRODUCER))
    assert [world.committed(partition=index) for index in (0, 1)] == [2, 4]
    assert [world.is_unstable(partition=index) for index in (0, 1)] == [False, True]
    take_response(world.end(OTHER))
    assert [world.committed(partition=index) for index in (0, 1)] == [2, 4], "3 was written before 4"
    assert not world.is_unstable(partition=1)


def test_a_later_plain_commit_stays_after_the_marker() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(1))
    world.commit(2)
    assert (world.committed(), world.is_unstable()) == (2, True)
    take_response(world.end())
    assert (world.committed(), world.is_unstable()) == (2, False)


def test_a_repeated_marker_is_harmless() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(1))
    assert [take_response(world.end()), take_response(world.end(is_commit=False)), take_response(world.end())] == [
        NONE
    ] * 3
    world.commit(2)
    take_response(world.end())
    assert world.committed() == 2


def test_groups_of_other_partitions_wait_for_markers_of_their_own() -> None:
    world = ProducerWorld()
    names = [GROUP, next(name for name in "abcdefgh" if world.coordinator.partition_for(name) != 3)]
    assert world.coordinator.partition_for(GROUP) != world.coordinator.partition_for(names[1])
    for name in names:
        take_response(world.commit_in_transaction(5, group=name))
    take_response(world.end(group=GROUP))
    assert [world.committed(group=name) for name in names] == [5, -1]
    take_response(world.end(group=names[1]))
    assert [world.committed(group=name) for name in names] == [5, 5]


def test_a_group_comes_to_be_with_its_first_offset_that_waits() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction())
    for process in (world, world.again()):
        groups = process.coordinator.list()
        assert isinstance(groups, list)
        assert [(group.group_id, group.group_state) for group in groups] == [(GROUP, "Empty")]
        take_response(process.end(is_commit=False))


def test_nothing_is_left_of_transactions_that_ended() -> None:
    world = ProducerWorld()
    for number in range(100):
        take_response(world.commit_in_transaction(number, number, partition=number % 3))
    assert world.open_transactions() == 100
    for number in range(100):
        take_response(world.end(number, is_commit=number % 2 == 0))
    assert world.open_transactions() == 0
    pending = world.coordinator._registry.by_id[GROUP].offsets.pending
    assert (pending._by_partition, pending._by_producer) == ({}, {})


# The log


def test_the_records_are_part_of_the_transaction() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction())
    (batch,) = world.log.batches[world.coordinator.partition_for(GROUP)]
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER, 0, -1)
    assert header.is_transactional


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE])
def test_a_refused_commit_does_not_become_pending(code: ErrorCode) -> None:
    world = ProducerWorld()
    world.log.refuse_with = code
    assert take_response(world.commit_in_transaction()) == [code]
    assert world.coordinator.list() == []
    assert world.open_transactions() == 0


def test_a_marker_that_the_log_refuses_ends_nothing() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction())
    world.log.refuse_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert take_response(world.end()) is ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "in the log's own words, for the other coordinator"
    )
    world.log.refuse_with = None
    assert (world.committed(), world.is_unstable()) == (-1, True)
    take_response(world.end())
    assert (world.committed(), world.is_unstable()) == (7, False)


def test_a_marker_takes_effect_in_the_order_of_the_log() -> None:
    log = LateLog()
    world = ProducerWorld(log)
    world.commit_in_transaction(1)
    ended = world.end()
    world.commit_in_transaction(2)
    for index in (1, 1, 0):  # the first append is reported last
        assert is_waiting(ended)
        log.tell(index)
    assert take_response(ended) is NONE
    assert (world.committed(), world.is_unstable()) == (1, True)
    assert world.committed() == world.again().committed()


def test_a_marker_waits_for_the_log_however_long_it_takes() -> None:
    log = LateLog()
    world = ProducerWorld(log)
    world.commit_in_transaction(1)
    ended = world.end()
    world.clock.advance(100)
    assert is_waiting(ended)
    log.tell()
    log.tell()
    assert take_response(ended) is NONE
    assert world.committed() == 1


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_fetch_waits_for_a_marker_that_is_on_its_way(is_commit: bool) -> None:
    log = LateLog()
    world = ProducerWorld(log)
    world.commit_in_transaction(1)
    log.tell()
    world.end(is_commit=is_commit)
    fetch = world.coordinator.fetch_offsets(GROUP)
    assert is_waiting(fetch)
    log.tell()
    fetched = take_response(fetch)
    assert not fetched.offsets.pending
    assert (fetched.offsets.get("t", 0) is not None) is is_commit


# Elections and resignations


def test_transactions_that_were_open_are_open_after_a_restart() -> None:
    world = ProducerWorld()
    world.commit(1)
    take_response(world.commit_in_transaction(2))
    take_response(world.commit_in_transaction(3, OTHER, partition=1))
    again = world.again()
    assert [again.committed(partition=index) for index in (0, 1)] == [1, -1]
    assert [again.is_unstable(partition=index) for index in (0, 1)] == [True, True]
    take_response(again.end(PRODUCER))
    take_response(again.end(OTHER, is_commit=False))
    for process in (again, again.again()):
        assert [process.committed(partition=index) for index in (0, 1)] == [2, -1]
        assert not process.is_unstable()
        assert process.open_transactions() == 0


def test_a_partition_that_is_not_loaded_takes_no_markers() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction())
    partition = world.coordinator.partition_for(GROUP)
    world.coordinator.on_resignation(partition)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        world.end()
    world.coordinator.on_election(partition)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        world.end()
    world.turn(5)
    assert world.is_unstable()
    take_response(world.end())
    assert (world.committed(), world.is_unstable()) == (7, False)


def test_a_marker_under_way_when_the_partition_goes_touches_nothing() -> None:
    log = LateLog()
    world = ProducerWorld(log)
    world.commit_in_transaction()
    log.tell()
    ended = world.end()
    partition = world.coordinator.partition_for(GROUP)
    world.coordinator.on_resignation(partition)
    world.coordinator.on_election(partition)
    log.tell()
    assert take_response(ended) is NONE
    world.turn(5)
    assert (world.committed(), world.is_unstable()) == (7, False)


def test_a_resigned_partition_leaves_nothing_behind() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction())
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    assert world.coordinator._registry.transactions == {}


# Deleting


def test_a_deleted_group_drops_its_pending_offsets() -> None:
    world = ProducerWorld()
    world.commit(1, partition=1)
    take_response(world.commit_in_transaction(2))
    assert take_response(world.coordinator.delete(GROUP)) is NONE
    assert world.coordinator.list() == []
    take_response(world.end())
    for process in (world, world.again()):
        assert [process.committed(partition=index) for index in (0, 1)] == [-1, -1]


def test_a_group_that_could_not_be_deleted_still_waits() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(2))
    world.log.hold = True
    deleted = world.coordinator.delete(GROUP)
    ended = world.end()
    tombstones, marker = world.log.held
    tombstones.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    marker.succeed()
    assert take_response(deleted) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert take_response(ended) is NONE
    assert (world.committed(), world.is_unstable()) == (2, False)


def test_a_new_group_of_the_name_has_nothing_of_the_one_that_was_deleted() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(2))
    take_response(world.coordinator.delete(GROUP))
    take_response(world.commit_in_transaction(3, partition=1))
    take_response(world.end())
    for process in (world, world.again()):
        assert [process.committed(partition=index) for index in (0, 1)] == [-1, 3]


def test_a_deleted_offset_drops_pending_offsets_of_its_partition() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(2))
    take_response(world.commit_in_transaction(3, partition=1))
    codes = take_response(world.coordinator.delete_offsets(GROUP, [("t", 0), ("t", 5)]))
    assert codes == [NONE, NONE]
    assert [world.is_unstable(partition=index) for index in (0, 1)] == [False, True]
    take_response(world.end())
    for process in (world, world.again()):
        assert [process.committed(partition=index) for index in (0, 1)] == [-1, 3]


def test_a_deleted_topic_takes_its_offsets_that_wait_with_it() -> None:
    world = ProducerWorld()
    take_response(world.commit_in_transaction(2))
    take_response(world.commit_in_transaction(3, topic="other", topic_id=b"o" * 16))
    take_response(world.commit_in_transaction(4, topic="again", topic_id=b"n" * 16))
    world.coordinator.on_topics_deleted({"t": TOPIC_ID, "again": b"a" * 16})
    world.turn()
    take_response(world.end())
    for process in (world, world.again()):
        assert [process.committed(topic=name) for name in ("t", "other", "again")] == [-1, 3, 4]


# Retention


def expire_all(world: ProducerWorld) -> None:
    """Let time pass until every offset so far has expired and was checked."""
    world.clock.pump([600] * 8)
    world.turn(10)


def test_neither_an_offset_nor_its_group_grows_too_old_while_a_transaction_is_open() -> None:
    world = ProducerWorld(offsets_retention_ms=3_600_000)
    world.commit(1, partition=0)
    world.commit(2, partition=1)
    take_response(world.commit_in_transaction(3, partition=1))
    expire_all(world)
    assert [world.committed(partition=index) for index in (0, 1)] == [-1, 2]
    take_response(world.coordinator.delete_offsets(GROUP, [("t", 1)]))
    take_response(world.commit_in_transaction(3, partition=1))
    expire_all(world)
    assert world.state() == "Empty", "nothing but an offset that waits keeps it"
    take_response(world.end(is_commit=False))
    expire_all(world)
    assert world.coordinator.list() == []


def test_a_commit_too_old_when_its_transaction_ends_is_seen_and_goes_with_the_next_look() -> None:
    world = ProducerWorld(offsets_retention_ms=3_600_000)
    take_response(world.commit_in_transaction(3))
    expire_all(world)
    take_response(world.end())
    assert world.committed() == 3
    expire_all(world)
    assert world.coordinator.list() == []
