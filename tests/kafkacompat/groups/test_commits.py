"""OffsetCommit and OffsetFetch."""

from typing import Any

import pytest

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import FetchedOffsets, OffsetToCommit
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import GROUP, TOPIC_ID, World, is_waiting, take_response

NONE = ErrorCode.NONE


@pytest.mark.parametrize(
    ("story", "request_", "code"),
    [
        ("nothing", {}, NONE),
        ("nothing", {"group": ""}, NONE),
        ("nothing", {"member_id": "x"}, NONE),
        ("nothing", {"generation": 0}, ErrorCode.GROUP_ID_NOT_FOUND),
        ("empty", {}, NONE),
        ("empty", {"member_id": "x"}, NONE),
        ("empty", {"generation": 2}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("form", {"member_id": "it", "generation": 1}, ErrorCode.REBALANCE_IN_PROGRESS),
        ("form", {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stable", {"member_id": "it", "generation": 1}, NONE),
        ("stable", {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stable", {"member_id": "it"}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "it", "generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "it", "generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ("stable", {"member_id": "x", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stable", {"instance": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("rebalance", {"member_id": "it", "generation": 1}, NONE),
        ("rebalance", {}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_are_checked_by_member_and_state(story: str, request_: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    assert take_response(world.commit(**world.play(story, request_))) == [code]
    assert world.committed(group=request_.get("group", GROUP)) == (-1 if code else 7)


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (None, NONE),
        ("x" * 4096, NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("ü" * 4096, NONE),
        ("\N{GRINNING FACE}" * 2048, NONE),
        ("\N{GRINNING FACE}" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_has_a_bound_counted_in_utf_16(metadata: str | None, code: ErrorCode) -> None:
    assert take_response(World().commit(metadata=metadata)) == [code]


def test_a_partition_with_too_much_metadata_does_not_hinder_the_others() -> None:
    world = World()
    offsets = [OffsetToCommit("t", TOPIC_ID, index, 5, 0, "x" * (5000 * index)) for index in range(2)]
    codes = take_response(world.coordinator.commit(GROUP, SenderIdentity("", None, -1), offsets))
    assert codes == [NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert [world.committed(partition=0), world.committed(partition=1)] == [5, -1]


def test_a_commit_outside_of_a_group_makes_a_simple_group() -> None:
    world = World()
    world.commit()
    groups = world.coordinator.list()
    assert isinstance(groups, list)
    assert [(group.group_id, group.protocol_type, group.group_state) for group in groups] == [(GROUP, "", "Empty")]


def test_a_refused_commit_makes_no_group() -> None:
    world = World()
    world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert take_response(world.commit()) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.coordinator.list() == []


def test_a_commit_is_answered_and_seen_once_it_is_in_the_log() -> None:
    world = World()
    world.commit(1)
    world.log.hold = True
    commit = world.commit(2)
    fetch = world.coordinator.fetch_offsets(GROUP)
    assert is_waiting(commit)
    assert is_waiting(fetch), "a fetch does not read behind a commit that came before it"
    world.log.held.pop().succeed()
    assert take_response(commit) == [NONE]
    fetched: FetchedOffsets = take_response(fetch)
    committed = fetched.offsets.get("t", 0)
    assert committed is not None
    assert committed.offset == 2


def test_a_refused_commit_leaves_the_one_before() -> None:
    world = World()
    world.commit(1)
    world.log.hold = True
    commit = world.commit(2)
    world.log.held.pop().fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert take_response(commit) == [ErrorCode.NOT_COORDINATOR]
    assert world.committed() == 1


def test_commits_take_effect_in_their_order_even_if_the_log_answers_in_another() -> None:
    world = World()
    world.log.hold = True
    commits = [world.commit(1), world.commit(2)]
    first, second = world.log.held
    second.succeed()
    assert is_waiting(commits[1])
    first.succeed()
    assert [take_response(commit) for commit in commits] == [[NONE], [NONE]]
    assert world.committed() == 2


def test_a_commit_that_takes_too_long_is_answered_and_counts_when_it_is_there() -> None:
    world = World()
    world.log.hold = True
    commit = world.commit(2)
    fetch = world.coordinator.fetch_offsets(GROUP)
    world.clock.advance(4.999)
    assert is_waiting(commit)
    world.clock.advance(0.001)
    assert take_response(commit) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    fetched: FetchedOffsets = take_response(fetch)
    assert fetched.error_code is ErrorCode.NOT_COORDINATOR
    world.log.held.pop().succeed()
    assert world.committed() == 2


def test_one_that_is_late_does_not_delay_the_time_limit_of_the_next() -> None:
    world = World()
    world.log.hold = True
    world.commit(1)
    world.clock.advance(3)
    second = world.commit(2)
    world.clock.advance(2)
    assert is_waiting(second)
    world.clock.advance(3)
    assert take_response(second) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_a_commit_that_lands_after_its_partition_was_handed_over_is_not_seen() -> None:
    world = World()
    world.log.hold = True
    commit = world.commit()
    partition = world.coordinator.partition_for(GROUP)
    world.coordinator.on_resignation(partition)
    world.log.held.pop().succeed()
    assert take_response(commit) == [NONE]
    assert world.coordinator.list() == []


@pytest.mark.parametrize("is_late", [False, True])
def test_a_commit_on_its_way_when_its_partition_is_read_again_is_seen(is_late: bool) -> None:
    world = World()
    world.commit(1)
    world.log.hold = True
    world.commit(2)
    world.coordinator._reload(world.coordinator.partition_for(GROUP))
    if is_late:
        world.clock.advance(10)
    assert take_response(world.commit(3)) == [ErrorCode.NOT_COORDINATOR]
    world.log.held.pop().succeed()
    world.turn(5)
    assert world.committed() == 2


def test_a_commit_during_a_rebalance_keeps_the_session() -> None:
    world = World()
    members = world.stable(2)
    world.join(members[0])
    for _ in range(4):
        world.clock.advance(9)
        assert take_response(world.commit(member_id=members[1], generation=1)) == [NONE]
    assert world.heartbeat(members[1], 1) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("retention_ms", [2**63 - 1, 0, -2])
def test_no_retention_time_breaks_anything(retention_ms: int) -> None:
    world = World()
    assert take_response(world.commit(retention_ms=retention_ms)) == [NONE]
    assert world.restarted().committed() == 7


def test_an_unknown_group_has_no_offsets_and_no_error() -> None:
    assert World().committed(group="x") == -1
