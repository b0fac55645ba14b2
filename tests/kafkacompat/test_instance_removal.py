"""The removal of instances: complete, and continued after a crash at any write of the metadata."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.instances import Instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.instance_removal import RETRY_S, InstanceRemoval
from kafkacompat.metadata.client_entities import CLIENT_ID, USER, make_entity
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.controller import Controller
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import NO_LEADER, ImageHolder, MetadataImage
from kafkacompat.metadata.quota_changes import QuotaAlteration
from kafkacompat.metadata.scram_changes import ScramUpsertion
from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.token_changes import NewToken, TokenRules, create_token
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.security.acls.model import (
    AccessRule,
    Acl,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResourceType,
    PatternType,
)
from kafkacompat.security.principals import Principal
from kafkacompat.tenancy import instance_changes, removal
from kafkacompat.wire.apis.list_groups import ListedGroup
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.metadata.deferreds import outcome

START_S = 1_700_000_000
RULES = TokenRules("key", 1 << 40, 1 << 40)


class Groups:
    """A coordinator with groups by id; those in ``busy`` have members."""

    def __init__(self, group_ids: set[str]) -> None:
        self.group_ids = group_ids
        self.busy: set[str] = set()

    def list(self, states: Any, types: Any) -> Any:
        return [ListedGroup(group_id=group_id) for group_id in sorted(self.group_ids)]

    def delete(self, group_id: str) -> Any:
        if group_id in self.busy:
            return ErrorCode.NON_EMPTY_GROUP
        self.group_ids.remove(group_id)
        return ErrorCode.NONE


class Node:
    """A single node over a store that survives its crashes."""

    def __init__(self, store: MemoryStore, groups: Groups, clock: Clock) -> None:
        config = BrokerConfig({"node.id": "1"})
        self.clock, self.holder, self.store = clock, ImageHolder(), store
        effective = EffectiveConfig(config)
        events = RecordingEvents()
        self.controller = Controller(store, self.holder, events, effective, config, Random(7))
        outcome(self.controller.load("cluster-1"))
        outcome(self.controller.start())
        self.removal = InstanceRemoval(1, clock, self.holder, self.controller, lambda: groups)  # type: ignore[arg-type, return-value]

    @property
    def image(self) -> MetadataImage:
        return self.controller.committed

    def alter(self, name: str, changes: instance_changes.Changes) -> None:
        change = ResourceChange(ResourceType.INSTANCE, name, changes)
        assert outcome(self.controller.alter_configs([change])) == [None]


def make_acl(kind: AclResourceType, name: str, principal: str) -> Acl:
    rule = AccessRule(principal, "*", AclOperation.READ, AclPermission.ALLOW)
    return Acl(AclPattern(kind, PatternType.LITERAL, name), rule)


def fill(node: Node, name: str, adopted: str) -> None:
    """Give an instance one thing of each kind, and a topic that it has adopted."""
    prefix = f"{name}."
    node.alter(name, instance_changes.plan_creation({"topic.names": f"{adopted}:{adopted}"}, Random(name)))
    topics = [NewTopic(f"{prefix}{number}", 1, 1) for number in range(3)]
    outcome(node.controller.create_topics([*topics, NewTopic(adopted, 1, 1)]))
    user = ScramUpsertion(f"{prefix}alice", 1, 4096, b"salt", b"x" * 32)
    assert outcome(node.controller.alter_scram_credentials([user])) == {f"{prefix}alice": None}
    entities = [
        make_entity([(USER, f"{prefix}alice")]),
        make_entity([(CLIENT_ID, f"{prefix}app")]),
        make_entity([(USER, prefix), (CLIENT_ID, f"{prefix}app")]),
    ]
    outcome(
        node.controller.alter_client_quotas(
            [QuotaAlteration(entity, [("producer_byte_rate", 9.0)]) for entity in entities]
        )
    )
    outcome(
        node.controller.create_acls(
            [
                make_acl(AclResourceType.TOPIC, f"{prefix}0", f"User:{prefix}alice"),
                make_acl(AclResourceType.TOPIC, adopted, "User:operator"),
                make_acl(AclResourceType.CLUSTER, f"{prefix}kafka-cluster", f"User:{prefix}bob"),
                make_acl(AclResourceType.GROUP, "shared", f"User:{prefix}alice"),
            ]
        )
    )
    token = NewToken(
        f"{name}-token", Principal("User", f"{prefix}alice"), Principal("User", f"{prefix}alice"), (), 1 << 39
    )
    outcome(node.controller.change_tokens(lambda draft, _: create_token(draft, RULES, token, 0)))
    group = ResourceChange(
        ResourceType.GROUP,
        f"{prefix}group",
        [ConfigOperation("consumer.session.timeout.ms", ConfigOperationType.SET, "50000")],
    )
    assert outcome(node.controller.alter_configs([group])) == [None]


def make_world() -> tuple[MemoryStore, Groups, Clock]:
    """Two instances with the same things, and things of the operator's own; the first one is due."""
    store, groups, clock = MemoryStore(), Groups({"shop.g", "bank.g", "g"}), Clock()
    clock.advance(START_S)
    node = Node(store, groups, clock)
    outcome(node.controller.create_topics([NewTopic("others", 1, 1)]))
    outcome(node.controller.create_acls([make_acl(AclResourceType.TOPIC, "others", "User:operator")]))
    return store, groups, clock


def describe(image: MetadataImage) -> Any:
    """Everything in an image, without epochs."""
    acls = {acl for pattern, rules in image.acls.items() for acl in ((pattern, rule) for rule in rules)}
    return set(image.topics), dict(image.configs), dict(image.clients), dict(image.tokens), acls


def test_everything_of_the_instance_goes_and_nothing_else() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    fill(node, "bank", "bills")
    expected = describe(node.image)
    fill(node, "shop", "orders")
    node.removal.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 60_000))
    clock.advance(59)
    assert "shop.0" in node.image.topics and "orders" in node.image.topics
    clock.advance(1)
    assert describe(node.image) == expected
    assert groups.group_ids == {"bank.g", "g"}
    assert not clock.getDelayedCalls()


def test_a_crash_at_any_write_loses_nothing_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "ITEMS_A_PORTION", 1)
    monkeypatch.setattr("kafkacompat.instance_removal.TOPICS_A_PORTION", 1)
    crashes = 0
    while True:
        store, groups, clock = make_world()
        node = Node(store, groups, clock)
        fill(node, "bank", "bills")
        expected = describe(node.image)
        fill(node, "shop", "orders")
        node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 0))
        left = [crashes]

        def crash(store: MemoryStore = store, left: list[int] = left) -> None:
            if left[0] == 0:
                raise StoreError("the process ends here")
            left[0] -= 1

        store.before_write = crash
        node.removal.start()
        clock.advance(0)
        has_crashed = "shop" in {name for _, name in node.image.configs}
        node.removal.stop()
        store.before_write = lambda: None
        again = Node(store, groups, clock)
        again.removal.start()
        clock.advance(0)
        assert describe(again.image) == expected
        assert groups.group_ids == {"bank.g", "g"}
        if not has_crashed:
            break
        crashes += 1
    assert crashes > 10


def test_a_group_with_members_is_tried_again() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    fill(node, "shop", "orders")
    groups.busy = {"shop.g"}
    node.removal.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 0))
    clock.advance(0)
    assert "shop.g" in groups.group_ids and (ResourceType.INSTANCE, "shop") in node.image.configs
    groups.busy = set()
    clock.advance(RETRY_S)
    assert groups.group_ids == {"bank.g", "g"}
    assert (ResourceType.INSTANCE, "shop") not in node.image.configs


def test_rules_go_by_the_kind_of_their_resource() -> None:
    """A rule for everybody on a token is left by no user; the operator's cluster is not an adopted group of its name."""
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    cluster = make_acl(AclResourceType.CLUSTER, "kafka-cluster", "User:operator")
    outcome(node.controller.create_acls([cluster]))
    expected = describe(node.image)
    node.alter("shop", instance_changes.plan_creation({"group.names": "kafka-cluster"}, Random(1)))
    outcome(node.controller.create_acls([make_acl(AclResourceType.DELEGATION_TOKEN, "shop.token", "User:*")]))
    node.removal.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 0))
    clock.advance(0)
    assert describe(node.image) == expected


def test_a_damaged_instance_does_not_hold_up_the_others() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    fill(node, "shop", "orders")
    damaged = {"delete.at.ms": "0", "state": "deleting", "unknown": "1"}
    outcome(
        node.controller.change_tokens(lambda draft, _: draft.put_config((ResourceType.INSTANCE, "damaged"), damaged))
    )
    node.removal.start()
    deletion = {**node.image.configs[ResourceType.INSTANCE, "shop"], "state": "deleting", "delete.at.ms": "0"}
    outcome(node.controller.change_tokens(lambda draft, _: draft.put_config((ResourceType.INSTANCE, "shop"), deletion)))
    clock.advance(0)
    assert (ResourceType.INSTANCE, "shop") not in node.image.configs
    assert (ResourceType.INSTANCE, "damaged") in node.image.configs


def test_groups_without_a_coordinator_are_waited_for() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    outcome(node.controller.create_topics([NewTopic(OFFSETS_TOPIC, 2, 1)]))
    fill(node, "shop", "orders")
    topic = node.image.topics[OFFSETS_TOPIC]

    def set_leader(leader: int) -> None:
        lost = topic.partitions[1]._replace(leader=leader)
        outcome(node.controller.change_tokens(lambda draft, _: draft.put_partitions(OFFSETS_TOPIC, [lost])))

    set_leader(NO_LEADER)
    node.removal.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 0))
    clock.advance(0)
    assert "shop.g" in groups.group_ids and (ResourceType.INSTANCE, "shop") in node.image.configs
    set_leader(1)
    clock.advance(RETRY_S)
    assert groups.group_ids == {"bank.g", "g"}
    assert (ResourceType.INSTANCE, "shop") not in node.image.configs


def test_an_instance_that_is_restored_keeps_what_it_has() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    fill(node, "shop", "orders")
    before = describe(node.image)
    node.removal.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 60_000))
    deleting = Instance("shop", node.image.configs[ResourceType.INSTANCE, "shop"])
    with pytest.raises(ConfigError, match="the grace period of the instance shop has passed"):
        instance_changes.plan_restoration(deleting, START_S * 1000 + 60_000)
    node.alter("shop", instance_changes.plan_restoration(deleting, START_S * 1000 + 59_999))
    clock.advance(3600)
    after = describe(node.image)
    assert after[0] == before[0] and after[2:] == before[2:]
    assert after[1][ResourceType.INSTANCE, "shop"] == {
        **before[1][ResourceType.INSTANCE, "shop"],
        "state": "active",
    }


def test_a_broker_that_is_not_the_controller_removes_nothing() -> None:
    store, groups, clock = make_world()
    node = Node(store, groups, clock)
    fill(node, "shop", "orders")
    other = InstanceRemoval(2, clock, node.holder, node.controller, lambda: groups)  # type: ignore[arg-type, return-value]
    other.start()
    node.alter("shop", instance_changes.plan_deletion(START_S * 1000, 0))
    clock.advance(3600)
    assert "shop.0" in node.image.topics
