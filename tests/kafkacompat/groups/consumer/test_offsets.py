"""Offsets of consumer groups: which members may commit and read them, and their retention."""

from __future__ import annotations

import pytest

from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import Consumer, ConsumerWorld, settle_members, topic_id
from tests.kafkacompat.groups.producers import make_marker
from tests.kafkacompat.groups.support import GROUP, take_response

WEEK_S = 7 * 24 * 3600


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


def commit(
    world: ConsumerWorld, member_id: str, epoch: int, partition: int = 0, *, knows_epochs: bool = True
) -> ErrorCode:
    offset = OffsetToCommit("t", topic_id("t"), partition, 7, 0, "")
    identity = SenderIdentity(member_id, None, epoch, knows_epochs=knows_epochs)
    return take_response(world.coordinator.commit(GROUP, identity, [offset]))[0]


def commit_in_transaction(
    world: ConsumerWorld, member_id: str, epoch: int, partition: int = 0, instance: str | None = None
) -> ErrorCode:
    offset = OffsetToCommit("t", topic_id("t"), partition, 7, 0, "")
    identity = SenderIdentity(member_id, instance, epoch)
    producer = LogProducer(9, 0, NOT_VERIFIED)
    return take_response(world.coordinator.commit_in_transaction(GROUP, identity, producer, [offset]))[0]


def fetch(world: ConsumerWorld, member_id: str | None = None, epoch: int = -1) -> ErrorCode:
    return take_response(world.coordinator.fetch_offsets(GROUP, member_id, epoch)).error_code


def test_a_member_commits_with_its_epoch(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert commit(world, "m", 2) == 0
    assert world.committed() == 7


def test_others_cannot(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert commit(world, "m", 3) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "m", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "n", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, "m", 2, knows_epochs=False) == ErrorCode.UNSUPPORTED_VERSION


def test_an_old_epoch_may_commit_partitions_that_it_owned(world: ConsumerWorld) -> None:
    """A commit may be under way at the same time as the response with the next epoch (KIP-1251)."""
    first, second = Consumer(world, "m1", "t").join(), Consumer(world, "m2", "t").join()
    settle_members(world, first, second)
    kept, other = min(first.has["t"]), min(second.has["t"])
    assert first.epoch == 3
    assert commit(world, "m1", 2, kept) == 0
    assert commit(world, "m1", 1, kept) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "m1", 2, other) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, "m2", 2, other) == ErrorCode.STALE_MEMBER_EPOCH


def test_partitions_may_be_committed_until_they_are_revoked(world: ConsumerWorld) -> None:
    first = Consumer(world, "m1", "t").join()
    world.wait(1)
    Consumer(world, "m2", "t").join()
    first.beat()
    given_up = min({0, 1, 2, 3} - first.has["t"])
    assert commit(world, "m1", 2, given_up) == 0
    first.beat()
    assert first.epoch == 3
    assert commit(world, "m1", 2, given_up) == ErrorCode.STALE_MEMBER_EPOCH


def test_anybody_may_commit_for_an_empty_group(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.beat("m", -1)
    assert commit(world, "", -1) == 0


# In transactions


def test_in_a_transaction_an_epoch_stands_for_the_generation(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert commit_in_transaction(world, "m", 2) == 0
    assert commit_in_transaction(world, "m", 3) == ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(world, "m", 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(world, "n", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_old_epoch_may_commit_partitions_that_it_owned_in_a_transaction(world: ConsumerWorld) -> None:
    first, second = Consumer(world, "m1", "t").join(), Consumer(world, "m2", "t").join()
    settle_members(world, first, second)
    kept, other = min(first.has["t"]), min(second.has["t"])
    assert commit_in_transaction(world, "m1", 2, kept) == 0
    assert commit_in_transaction(world, "m1", 2, other) == ErrorCode.ILLEGAL_GENERATION


def test_a_transactional_commit_without_a_member_is_accepted(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert commit_in_transaction(world, "", -1) == 0
    assert commit_in_transaction(world, "", -2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_in_transaction(world, "", -1, instance="i") == ErrorCode.UNKNOWN_MEMBER_ID
    world.beat("m", -1)
    assert commit_in_transaction(world, "n", -2) == 0


@pytest.mark.parametrize("is_commit", [True, False])
def test_pending_offsets_survive_a_change_of_the_protocol(world: ConsumerWorld, is_commit: bool) -> None:
    take_response(
        world.coordinator.commit(GROUP, SenderIdentity("", None, -1), [OffsetToCommit("t", topic_id("t"), 0, 5, 0, "")])
    )
    assert commit_in_transaction(world, "", -1) == 0
    world.come("m", "t")
    for process in (world, world.restarted()):
        fetched = take_response(process.coordinator.fetch_offsets(GROUP))
        assert ("t", 0) in fetched.offsets.pending
    partition = world.coordinator.partition_for(GROUP)
    batch = make_marker(is_commit=is_commit)
    take_response(
        world.coordinator.end_transaction(partition, 9, is_commit, lambda: world.log.append(partition, batch))
    )
    assert [process.committed() for process in (world, world.restarted())] == [7 if is_commit else 5] * 2


# Reading and retention


def test_offsets_are_read_with_a_members_epoch_or_without_a_member(world: ConsumerWorld) -> None:
    world.come("m", "t")
    assert fetch(world) == 0
    assert fetch(world, "m", 2) == 0
    assert fetch(world, "m", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(world, "n", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(world, None, 0) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_are_kept_while_their_topic_is_read(world: ConsumerWorld) -> None:
    member = Consumer(world, "m", "t").join()
    commit(world, "m", 2)
    for _ in range(WEEK_S // 40 + 40):
        world.clock.advance(40)
        member.beat()
    assert world.committed() == 7


def test_offsets_and_the_empty_group_expire(world: ConsumerWorld) -> None:
    world.come("m", "t")
    commit(world, "m", 2)
    world.beat("m", -1)
    for _ in range(WEEK_S // 600 + 2):
        world.clock.advance(600)
    assert not world.coordinator._registry.by_id
    assert not world.restarted().coordinator._registry.by_id


def test_a_group_with_members_is_not_deleted_and_an_empty_one_is(world: ConsumerWorld) -> None:
    world.come("m", "t")
    commit(world, "m", 2)
    assert take_response(world.coordinator.delete(GROUP)) == ErrorCode.NON_EMPTY_GROUP
    world.beat("m", -1)
    assert take_response(world.coordinator.delete(GROUP)) == 0
    assert world.beat("m", 2).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert not world.restarted().coordinator._registry.by_id


def test_a_deletion_that_the_log_refuses_leaves_the_group(world: ConsumerWorld) -> None:
    world.come("m", "t")
    world.beat("m", -1)
    epoch = world.contents().epoch
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert take_response(world.coordinator.delete(GROUP)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.contents().epoch == epoch


def test_offsets_of_a_topic_that_is_read_are_not_deleted(world: ConsumerWorld) -> None:
    world.come("m", "t")
    commit(world, "m", 2)
    codes = take_response(world.coordinator.delete_offsets(GROUP, [("t", 0), ("u", 0)]))
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]


def test_offsets_outlast_a_restart_with_the_group(world: ConsumerWorld) -> None:
    world.come("m", "t")
    commit(world, "m", 2)
    after = ConsumerWorld(world.log)
    after.turn(100)
    assert after.committed() == 7
    assert after.beat("m", 2).error_code == 0
