"""The decisions about clients: Kafka's rules, one by one."""

from __future__ import annotations

import pytest

from kafkacompat.security.acls.decisions import (
    ALLOWED_BY_DEFAULT,
    DENIED_BY_DEFAULT,
    decide,
    is_allowed_on_any,
    make_client,
)
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from tests.kafkacompat.security.acls.rules import build_table

ALICE = make_client("User:alice", "10.0.0.1")


def is_allowed(operation: str, name: str, *rules: str, kind: str = "TOPIC") -> bool:
    table = build_table(*rules)
    return decide(table, ALICE, AclOperation[operation], AclResourceType[kind], name, DENIED_BY_DEFAULT).allowed


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ("+alice READ TOPIC orders", True),
        ("+bob READ TOPIC orders", False),
        ("+* READ TOPIC orders", True),
        ("+alice READ TOPIC order", False),
        ("+alice READ TOPIC order...", True),
        ("+alice READ TOPIC orders...", True),
        ("+alice READ TOPIC orders-...", False),
        ("+alice READ TOPIC *", True),
        ("+alice READ TOPIC *...", False),
        ("+alice READ GROUP orders", False),
        ("+alice WRITE TOPIC orders", False),
        ("+alice ALL TOPIC orders", True),
        ("+alice READ TOPIC orders from 10.0.0.1", True),
        ("+alice READ TOPIC orders from 10.0.0.2", False),
    ],
)
def test_a_rule_that_allows(rule: str, allowed: bool) -> None:
    assert is_allowed("READ", "orders", rule) is allowed


@pytest.mark.parametrize(
    "rule",
    [
        "-alice READ TOPIC orders",
        "-alice ALL TOPIC orders",
        "-alice READ TOPIC ord...",
        "-alice READ TOPIC *",
        "-* READ TOPIC orders",
        "-* ALL TOPIC * from 10.0.0.1",
    ],
)
@pytest.mark.parametrize("allowing", ["+alice READ TOPIC orders", "+* ALL TOPIC *", "+alice READ TOPIC orders..."])
def test_a_rule_that_denies_wins(rule: str, allowing: str) -> None:
    assert not is_allowed("READ", "orders", rule, allowing)
    assert is_allowed("READ", "orders", allowing)


@pytest.mark.parametrize(
    "rule",
    [
        "-bob READ TOPIC orders",
        "-alice WRITE TOPIC orders",
        "-alice READ TOPIC orders from 10.0.0.2",
        "-alice READ TOPIC orders-...",
        "-alice READ GROUP orders",
    ],
)
def test_a_rule_that_denies_something_else(rule: str) -> None:
    assert is_allowed("READ", "orders", rule, "+alice READ TOPIC orders")


@pytest.mark.parametrize("operation", list(AclOperation))
def test_implied_operations(operation: AclOperation) -> None:
    rule = f"+alice {operation.name} TOPIC orders"
    assert is_allowed("DESCRIBE", "orders", rule) is (
        operation.name in ("ALL", "READ", "WRITE", "DELETE", "ALTER", "DESCRIBE")
    )
    assert is_allowed("DESCRIBE_CONFIGS", "orders", rule) is (
        operation.name in ("ALL", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
    )
    assert is_allowed("CREATE", "orders", rule) is (operation.name in ("ALL", "CREATE"))


def test_denying_an_operation_denies_no_implied_one() -> None:
    assert is_allowed("DESCRIBE", "orders", "-alice READ TOPIC orders", "+alice WRITE TOPIC orders")
    assert not is_allowed("DESCRIBE", "orders", "-alice DESCRIBE TOPIC orders", "+alice READ TOPIC orders")


def test_the_default_is_for_resources_without_any_rule() -> None:
    table = build_table("+bob READ TOPIC orders", "+bob READ TOPIC bob-...")
    for name, allowed in (("orders", False), ("bob-1", False), ("payments", True)):
        decision = decide(table, ALICE, AclOperation.READ, AclResourceType.TOPIC, name, ALLOWED_BY_DEFAULT)
        assert decision.allowed is allowed, name


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("::1", "::1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a:1", "2001:db8:0:0:0:0:a:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("not an address", "not an address"),
    ],
)
def test_addresses_may_be_written_in_several_ways(host: str, written: str) -> None:
    table = build_table(f"-alice READ TOPIC orders from {written.replace(' ', '_')}", "+alice READ TOPIC orders")
    client = make_client("User:alice", host.replace(" ", "_"))
    assert not decide(table, client, AclOperation.READ, AclResourceType.TOPIC, "orders", DENIED_BY_DEFAULT).allowed


def test_the_reason_of_a_decision() -> None:
    table = build_table("-alice READ TOPIC ord...")
    decision = decide(table, ALICE, AclOperation.READ, AclResourceType.TOPIC, "orders", DENIED_BY_DEFAULT)
    assert decision.describe() == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=ord, patternType=PREFIXED, principal=User:alice,"
        " host=*, operation=READ, permissionType=DENY))"
    )


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        (["+alice WRITE TOPIC a"], True),
        (["+* WRITE TOPIC a"], True),
        (["+bob WRITE TOPIC a"], False),
        (["+alice WRITE GROUP a"], False),
        (["+alice READ TOPIC a"], False),
        (["+alice WRITE TOPIC a from 10.0.0.2"], False),
        (["+alice WRITE TOPIC *"], True),
        (["+alice WRITE TOPIC a", "-alice WRITE TOPIC a"], False),
        (["+alice WRITE TOPIC a", "-alice WRITE TOPIC *"], False),
        (["+alice WRITE TOPIC *", "-* ALL TOPIC *"], False),
        (["+alice WRITE TOPIC abc", "-alice WRITE TOPIC ab..."], False),
        (["+alice WRITE TOPIC abc...", "-alice WRITE TOPIC ab..."], False),
        (["+alice WRITE TOPIC ab...", "-alice WRITE TOPIC abc..."], True),
        (["+alice WRITE TOPIC ab...", "-alice WRITE TOPIC ab"], True),
        (["+alice WRITE TOPIC *", "-alice WRITE TOPIC a..."], True),
        (["+alice WRITE TOPIC a", "+alice WRITE TOPIC b", "-alice WRITE TOPIC a"], True),
    ],
)
def test_a_right_on_any_resource_of_a_type(rules: list[str], allowed: bool) -> None:
    table = build_table(*rules)
    assert is_allowed_on_any(table, ALICE, AclOperation.WRITE, AclResourceType.TOPIC) is allowed
