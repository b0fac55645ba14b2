"""The authorizer: super users, defaults, and the decisions that it remembers."""

from __future__ import annotations

import pytest

from kafkacompat.security.acls.authorizer import Attempt, Authorizer, describe_attempt, parse_super_users
from kafkacompat.security.acls.decisions import DENIED_BY_DEFAULT
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.acls.table import AclTable
from kafkacompat.security.principals import Principal
from tests.kafkacompat.security.acls.rules import build_table

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
READ, TOPIC = AclOperation.READ, AclResourceType.TOPIC


class Rules:
    """A table that tests replace; ``looks`` counts the look-ups in it."""

    def __init__(self, *lines: str) -> None:
        self.table = build_table(*lines)

    def find(self) -> AclTable:
        return self.table


def test_super_users_may_do_everything() -> None:
    rules = Rules("-alice ALL TOPIC *")
    authorizer = Authorizer(rules.find, [ALICE])
    assert authorizer.decide(ALICE, "h", READ, TOPIC, "t").reason == "SuperUser"
    assert authorizer.decide_on_any(ALICE, "h", AclOperation.WRITE, TOPIC).allowed
    assert not authorizer.decide(Principal("Group", "alice"), "h", READ, TOPIC, "t").allowed


def test_a_token_stands_for_its_user() -> None:
    authorizer = Authorizer(Rules("+alice READ TOPIC t").find)
    assert authorizer.decide(Principal("User", "alice", by_token=True), "h", READ, TOPIC, "t").allowed


@pytest.mark.parametrize("allowed", [False, True])
def test_the_default(allowed: bool) -> None:
    authorizer = Authorizer(Rules("+bob READ TOPIC t").find, allows_by_default=allowed)
    assert authorizer.decide(ALICE, "h", READ, TOPIC, "u").allowed is allowed
    assert not authorizer.decide(ALICE, "h", READ, TOPIC, "t").allowed
    assert authorizer.decide_on_any(ALICE, "h", AclOperation.WRITE, TOPIC).allowed is allowed


def test_decisions_hold_until_there_are_other_rules() -> None:
    rules = Rules("+alice READ TOPIC t")
    authorizer = Authorizer(rules.find)
    first = authorizer.decide(ALICE, "h", READ, TOPIC, "t")
    assert first.allowed and authorizer.decide(ALICE, "h", READ, TOPIC, "t") is first
    rules.table = build_table("-alice READ TOPIC t", "+alice WRITE TOPIC t")
    assert not authorizer.decide(ALICE, "h", READ, TOPIC, "t").allowed
    assert authorizer.decide_on_any(ALICE, "h", AclOperation.WRITE, TOPIC).allowed
    rules.table = build_table()
    assert not authorizer.decide_on_any(ALICE, "h", AclOperation.WRITE, TOPIC).allowed


def test_the_memory_of_decisions_is_bounded() -> None:
    authorizer = Authorizer(Rules("+alice READ TOPIC t...").find, most_decisions=10)
    for number in range(100):
        assert authorizer.decide(ALICE, "h", READ, TOPIC, f"t{number}").allowed
        assert not authorizer.decide(BOB, "h", READ, TOPIC, f"t{number}").allowed
    assert len(authorizer._decisions) <= 10
    assert authorizer.decide(ALICE, "h", READ, TOPIC, "t" * 1000).allowed
    assert max(len(key[-1] or "") for key in authorizer._decisions) < 1000


def test_super_users_in_a_property() -> None:
    assert parse_super_users("User:alice; User:CN=b,OU=c ;") == [ALICE, Principal("User", "CN=b,OU=c")]
    assert parse_super_users("") == []
    with pytest.raises(ValueError, match="takes the form User:NAME"):
        parse_super_users("alice")


def test_the_line_of_an_attempt_is_kafkas() -> None:
    attempt = Attempt(ALICE, "10.0.0.1", "SSL", "Produce", AclOperation.WRITE, TOPIC, "t", 2, DENIED_BY_DEFAULT)
    assert describe_attempt(attempt) == (
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = Topic:LITERAL:t"
        " for request = Produce with resourceRefCount = 2 based on rule DefaultDeny"
    )
