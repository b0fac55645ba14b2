"""Decisions about the resources of instances: super users, adopted names, and rules for names with some beginning."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.acls.model import AccessRule, Acl, AclOperation, AclPattern, AclPermission, PatternType
from kafkacompat.security.acls.model import AclResourceType as Kind
from kafkacompat.security.acls.table import AclTable, group_acls
from kafkacompat.security.principals import parse_principal
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.rights import InstanceRights

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE = AclOperation.READ, AclOperation.WRITE
LONG = "l" * 249


def make_instances() -> Instances:
    common = {"cluster.id": "c", "secret": "s", "super.users": "User:root"}
    adopted = {"topic.names": "old:legacy", "group.names": "g:legacy-g", "user.names": "carol:carol"}
    instances = Instances()
    configs: Any = {
        (ResourceType.INSTANCE, "shop"): {**common, **adopted, "super.users": "User:root,User:carol"},
        (ResourceType.INSTANCE, "bank"): common,
    }
    instances.update(MetadataImage(configs=configs))
    return instances


class Decider:
    """An authorizer with instances and these rules: kind, pattern type, name, principal, permission."""

    def __init__(self, *rules: tuple[Kind, PatternType, str, str, AclPermission], default: bool = False) -> None:
        self.instances = make_instances()
        acls = [
            Acl(AclPattern(kind, pattern, name), AccessRule(principal, "*", READ, permission))
            for kind, pattern, name, principal, permission in rules
        ]
        table = AclTable(group_acls(acls))
        self.authorizer = Authorizer(lambda: table, allows_by_default=default)
        self.authorizer.instances = InstanceRights(self.instances)

    def may(self, user: str, name: str, kind: Kind = Kind.TOPIC, operation: AclOperation = READ) -> bool:
        return self.authorizer.decide(parse_principal(user), "10.0.0.1", operation, kind, name).allowed

    def may_on_any(self, user: str, kind: Kind = Kind.TOPIC) -> bool:
        return self.authorizer.decide_on_any(parse_principal(user), "10.0.0.1", READ, kind).allowed


@pytest.mark.parametrize("user", ["User:shop.root", "User:carol"])
def test_super_users_do_everything_in_their_instance_and_nothing_else(user: str) -> None:
    decider = Decider()
    own = [
        (Kind.TOPIC, "shop.orders"),
        (Kind.TOPIC, "legacy"),
        (Kind.GROUP, "legacy-g"),
        (Kind.TRANSACTIONAL_ID, "shop.t"),
        (Kind.CLUSTER, "shop.kafka-cluster"),
        (Kind.USER, "User:shop.alice"),
        (Kind.USER, "User:carol"),
        (Kind.DELEGATION_TOKEN, "shop.token"),
    ]
    others = [
        (Kind.TOPIC, "bank.orders"),
        (Kind.TOPIC, "orders"),
        (Kind.GROUP, "legacy"),
        (Kind.TOPIC, "legacy-g"),
        (Kind.CLUSTER, "kafka-cluster"),
        (Kind.CLUSTER, "bank.kafka-cluster"),
        (Kind.USER, "User:bank.alice"),
        (Kind.USER, "User:alice"),
        (Kind.DELEGATION_TOKEN, "token"),
    ]
    for operation in AclOperation:
        assert all(decider.may(user, name, kind, operation) for kind, name in own)
        assert not any(decider.may(user, name, kind, operation) for kind, name in others)
    assert decider.may_on_any(user)


@pytest.mark.parametrize("user", ["User:root", "User:shop.alice", "User:bank.carol", "Group:shop.root", "User:shop."])
def test_others_are_no_super_users(user: str) -> None:
    decider = Decider()
    assert not decider.may(user, "shop.orders")
    assert not decider.may_on_any(user)


def test_a_change_of_the_super_users_takes_effect_once_decisions_are_forgotten() -> None:
    decider = Decider()
    decider.instances.watchers.append(lambda _: decider.authorizer.forget())
    assert decider.may("User:bank.root", "bank.orders")
    configs: Any = {(ResourceType.INSTANCE, "bank"): {"cluster.id": "c", "secret": "s"}}
    decider.instances.update(MetadataImage(configs=configs))
    assert not decider.may("User:bank.root", "bank.orders")


@pytest.mark.parametrize(
    ("rule", "name", "allowed"),
    [
        ((Kind.TOPIC, LITERAL, "legacy"), "legacy", True),
        ((Kind.TOPIC, PREFIXED, "shop."), "legacy", True),
        ((Kind.TOPIC, PREFIXED, "shop.ol"), "legacy", True),
        ((Kind.TOPIC, PREFIXED, "shop.leg"), "legacy", False),
        ((Kind.TOPIC, LITERAL, "*"), "legacy", True),
        ((Kind.GROUP, PREFIXED, "shop."), "legacy-g", True),
        ((Kind.GROUP, PREFIXED, "shop.g"), "legacy-g", True),
        ((Kind.GROUP, PREFIXED, "bank."), "legacy-g", False),
        ((Kind.USER, PREFIXED, "User:shop."), "User:carol", True),
        ((Kind.USER, LITERAL, "User:carol"), "User:carol", True),
    ],
)
def test_rules_select_adopted_resources(rule: tuple[Kind, PatternType, str], name: str, allowed: bool) -> None:
    decider = Decider((*rule, "User:shop.alice", ALLOW))
    assert decider.may("User:shop.alice", name, rule[0]) is allowed
    denying = Decider((*rule, "User:shop.alice", DENY), default=True)
    assert denying.may("User:shop.alice", name, rule[0]) is not allowed


def test_a_rule_that_denies_wins_under_either_name() -> None:
    names = ((LITERAL, "legacy"), (PREFIXED, "shop."))
    for denied in names:
        rules = [(Kind.TOPIC, *pattern, "User:shop.alice", DENY if pattern == denied else ALLOW) for pattern in names]
        assert not Decider(*rules).may("User:shop.alice", "legacy")


def test_topics_with_a_short_name_have_the_rules_of_their_clients_name() -> None:
    decider = Decider((Kind.TOPIC, PREFIXED, f"shop.{LONG[:240]}", "User:shop.alice", ALLOW))
    short = decider.instances.by_name["shop"].names.to_physical["topic"][LONG]
    assert len(short) == 249
    assert decider.may("User:shop.alice", short)
    assert not decider.may("User:shop.bob", short)


def test_a_right_on_any_resource_is_one_of_the_own_instance() -> None:
    everybody = (Kind.TOPIC, LITERAL, "bank.orders", "User:*", ALLOW)
    decider = Decider(everybody)
    assert decider.may_on_any("User:bank.alice")
    assert not decider.may_on_any("User:shop.alice")
    assert decider.may_on_any("User:operator")
    assert Decider((Kind.TOPIC, PREFIXED, "sh", "User:*", ALLOW)).may_on_any("User:shop.alice")
    assert Decider((Kind.TOPIC, LITERAL, "*", "User:*", ALLOW)).may_on_any("User:shop.alice")
    denied = (Kind.TOPIC, PREFIXED, "shop.", "User:shop.alice", DENY)
    allowed = (Kind.TOPIC, LITERAL, "shop.orders", "User:shop.alice", ALLOW)
    assert Decider(allowed).may_on_any("User:shop.alice")
    assert not Decider(allowed, denied).may_on_any("User:shop.alice")


def test_the_default_needs_a_resource_without_rules() -> None:
    rule = (Kind.TOPIC, PREFIXED, "shop.", "User:shop.bob", ALLOW)
    assert Decider(default=True).may("User:shop.alice", "legacy")
    assert not Decider(rule, default=True).may("User:shop.alice", "legacy")
    assert not Decider(rule, default=True).may("User:shop.alice", "shop.orders")
