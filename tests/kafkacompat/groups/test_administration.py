"""ListGroups and DeleteGroups."""

import pytest

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import DELAY_S, GROUP, World, is_waiting, take_response

NONE = ErrorCode.NONE


def list_groups(world: World, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    groups = world.coordinator.list(states, types)
    assert isinstance(groups, list)
    assert all(group.group_type == "classic" for group in groups)
    return sorted((group.group_id, group.group_state) for group in groups)


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        ((), (), "empty preparing stable"),
        (("Stable",), (), "stable"),
        (("stable", " EMPTY "), (), "empty stable"),
        (("PreparingRebalance",), (), "preparing"),
        (("nonsense",), (), ""),
        ((), ("classic",), "empty preparing stable"),
        ((), ("Classic", "consumer"), "empty preparing stable"),
        ((), ("consumer",), ""),
        (("Stable",), ("share",), ""),
    ],
)
def test_groups_are_listed_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], names: str) -> None:
    world = World()
    world.stable(group="stable")
    world.commit(group="empty")
    world.join(group="preparing", version=3)
    assert [name for name, _ in list_groups(world, states, types)] == names.split()


# Deleting


@pytest.mark.parametrize(
    ("story", "code"),
    [
        ("nothing", ErrorCode.GROUP_ID_NOT_FOUND),
        ("stable", ErrorCode.NON_EMPTY_GROUP),
        ("form", ErrorCode.NON_EMPTY_GROUP),
        ("join", ErrorCode.NON_EMPTY_GROUP),
        ("commit", NONE),
        ("pending", NONE),
    ],
)
def test_only_empty_groups_are_deleted(story: str, code: ErrorCode) -> None:
    world = World()
    stories = {"join": lambda: world.join(version=3), "pending": world.join, "nothing": lambda: None}
    stories.get(story, getattr(world, story, None))()  # type: ignore[misc]
    before = list_groups(world)
    assert take_response(world.coordinator.delete(GROUP)) is code
    assert list_groups(world) == (before if code else [])


def test_a_deleted_group_is_gone_with_its_offsets_here_and_in_the_log() -> None:
    world = World()
    members = world.stable()
    world.commit(member_id=members[0], generation=1)
    world.leave(*members)
    assert take_response(world.coordinator.delete(GROUP)) is NONE
    for process in (world, world.restarted()):
        assert list_groups(process) == []
        assert process.committed() == -1
    assert take_response(world.coordinator.delete(GROUP)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_pending_member_of_a_deleted_group_has_to_ask_again() -> None:
    world = World()
    member_id = take_response(world.join()).member_id
    take_response(world.coordinator.delete(GROUP))
    assert take_response(world.join(member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    other, answer = world.join_twice()
    world.clock.advance(DELAY_S)
    assert take_response(answer).member_id == other
    world.wait(30)


def test_deleting_is_answered_once_the_log_knows() -> None:
    world = World()
    world.commit()
    world.log.hold = True
    answer = world.coordinator.delete(GROUP)
    assert is_waiting(answer)
    assert list_groups(world) == []
    world.log.held.pop().succeed()
    assert take_response(answer) is NONE


def test_if_the_log_refuses_the_group_is_back() -> None:
    world = World()
    world.commit()
    world.log.hold = True
    answer = world.coordinator.delete(GROUP)
    world.log.held.pop().fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert take_response(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list_groups(world) == [(GROUP, "Empty")]
    world.log.hold = False
    assert world.committed() == 7
    assert take_response(world.coordinator.delete(GROUP)) is NONE


def test_if_the_log_refuses_a_new_group_of_the_name_stays() -> None:
    world = World()
    world.commit()
    world.log.hold = True
    world.coordinator.delete(GROUP)
    _, answer = world.join_twice()
    world.log.held.pop().fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    world.clock.advance(DELAY_S)
    assert take_response(answer).generation_id == 1
    assert list_groups(world) == [(GROUP, "CompletingRebalance")]


def test_deleting_waits_for_commits_that_came_before() -> None:
    world = World()
    world.commit(1)
    world.log.hold = True
    world.commit(2, partition=1)
    answer = world.coordinator.delete(GROUP)
    world.log.hold = False
    world.log.held.pop().succeed()
    assert take_response(answer) is NONE
    assert list_groups(world.restarted()) == []


def test_deleting_gives_up_on_commits_that_take_too_long() -> None:
    world = World()
    world.log.hold = True
    world.commit()
    answer = world.coordinator.delete(GROUP)
    world.clock.advance(5)
    assert take_response(answer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
