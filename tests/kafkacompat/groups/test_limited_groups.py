"""limit.groups of an instance: new groups are refused by every request that creates one, existing ones go on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config.instances import Instance
from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.consumer.progress import ClientIdentity
from kafkacompat.groups.registry import CountedGroups
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.consumer.support import ConsumerWorld
from tests.kafkacompat.groups.support import TOPIC_ID, World, take_response

REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def limit(world: World, groups: str, **given: str) -> None:
    """Let the instance shop have at most this many groups."""
    properties = {"limit.groups": groups, "group.names": "mine:adopted"} | {
        name.replace("_", "."): text for name, text in given.items()
    }
    instance = Instance("shop", properties)

    def find(group_id: str) -> Instance | None:
        return instance if group_id.startswith(instance.prefix) or group_id == "adopted" else None

    world.coordinator._registry._find_instance = find


def join(world: World, group: str) -> ErrorCode:
    answer = world.join(group=group)
    code = ErrorCode.NONE if isinstance(answer, Deferred) else ErrorCode(answer.error_code)
    return ErrorCode.NONE if code is ErrorCode.MEMBER_ID_REQUIRED else code


def commit(world: World, group: str) -> ErrorCode:
    return take_response(world.commit(group=group))[0]


def commit_in_transaction(world: World, group: str) -> ErrorCode:
    producer = LogProducer(1, 0, NOT_VERIFIED)
    offset = OffsetToCommit("t", TOPIC_ID, 0, 5, 0, "")
    identity = SenderIdentity("", None, -1)
    return take_response(world.coordinator.commit_in_transaction(group, identity, producer, [offset]))[0]


@pytest.mark.parametrize("create", [join, commit, commit_in_transaction])
def test_requests_that_create_a_group_are_refused_at_the_limit(create: Any) -> None:
    world = World()
    limit(world, "2")
    world.stable(group="shop.a")
    world.stable(group="adopted")
    assert create(world, "shop.b") is REFUSED
    assert "shop.b" not in world.coordinator.groups
    assert create(world, "other.b") is ErrorCode.NONE


def test_the_new_protocol_is_refused_with_a_sentence() -> None:
    world = ConsumerWorld()
    limit(world, "0")
    request = ConsumerGroupHeartbeatRequest(
        group_id="shop.a",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    response = take_response(
        world.coordinator.consumer_heartbeat(request, ClientIdentity("c", "/h"), needs_member_id=False)
    )
    assert (response.error_code, response.error_message) == (
        REFUSED,
        "the limit of groups is reached: delete a group, or ask for a higher limit",
    )


def test_existing_groups_go_on_after_the_limit_is_lowered() -> None:
    world = World()
    member = world.stable(group="shop.a")[0]
    world.stable(group="shop.b")
    limit(world, "1")
    assert world.heartbeat(member, 1, group="shop.a") is ErrorCode.NONE
    assert commit(world, "shop.b") is not REFUSED
    assert join(world, "shop.b") is ErrorCode.NONE


def test_a_deleted_group_makes_room() -> None:
    world = World()
    limit(world, "1")
    assert commit(world, "shop.a") is ErrorCode.NONE
    assert commit(world, "shop.b") is REFUSED
    assert take_response(world.coordinator.delete("shop.a")) is ErrorCode.NONE
    assert commit(world, "shop.b") is ErrorCode.NONE


def test_groups_of_other_instances_do_not_count() -> None:
    world = World()
    for number in range(5):
        commit(world, f"bank.{number}")
    limit(world, "1")
    assert commit(world, "shop.a") is ErrorCode.NONE


def test_a_loaded_group_counts() -> None:
    world = World()
    commit(world, "shop.a")
    after = world.restarted()
    limit(after, "1")
    assert commit(after, "shop.b") is REFUSED


@pytest.mark.parametrize("prefix", ["shop.", "shop", "a.b.", ""])
def test_the_count_equals_that_of_all_ids(prefix: str) -> None:
    rng, groups = Random(1), CountedGroups()
    ids = [f"{head}{number}" for head in ("shop.", "shopping.", "a.b.", "a.", "") for number in range(4)]
    for step in range(400):
        group_id = rng.choice(ids)
        if group_id in groups and rng.random() < 0.5:
            del groups[group_id]
        elif rng.random() < 0.2:
            groups.add_all(dict.fromkeys(rng.sample(ids, 3), None))  # type: ignore[arg-type]
        else:
            groups[group_id] = None  # type: ignore[assignment]
        if step % 3 == 0:
            assert groups.count_with_prefix(prefix) == sum(group.startswith(prefix) for group in groups)
