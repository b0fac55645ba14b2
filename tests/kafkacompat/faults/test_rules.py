"""Which requests a rule chooses, and what is wrong with rules that can never match."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.faults import FaultError, Faults
from kafkacompat.faults.active import MOST_RULES, FaultCounts
from kafkacompat.faults.parsing import parse_rule
from kafkacompat.faults.rules import RequestFacts, RequestTarget
from kafkacompat.wire.errors import ErrorCode

PRODUCE = RequestFacts(
    "Produce", 9, "app-1", "PLAINTEXT", "User:alice", [RequestTarget("orders", 0), RequestTarget("orders", 1)]
)


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"api": "Produce"}, True),
        ({"api": ["Fetch", "Produce"]}, True),
        ({"api": "Fetch"}, False),
        ({"api": "Produce", "versions": "9+"}, True),
        ({"api": "Produce", "versions": "0-8"}, False),
        ({"client_id": "app-*"}, True),
        ({"client_id": "other"}, False),
        ({"topic": "orders"}, True),
        ({"topic": "ord*"}, True),
        ({"topic": "orders", "partition": 1}, True),
        ({"topic": "orders", "partition": 2}, False),
        ({"partition": 0}, True),
        ({"topic": "Orders"}, False),
        ({"listener": "PLAINTEXT", "principal": "User:a*"}, True),
        ({"listener": "SSL"}, False),
        ({"principal": "User:bob"}, False),
        ({"principal": "User:[a-z]*"}, False),
    ],
)
def test_a_rule_matches_by_all_of_its_fields(fields: dict[str, Any], matches: bool) -> None:
    assert parse_rule({**fields, "delay_ms": 1}).matches(PRODUCE) is matches


def test_a_metadata_request_for_every_topic_matches_a_rule_about_one() -> None:
    facts = RequestFacts("Metadata", 12, names_all_topics=True)
    assert parse_rule({"topic": "orders", "error": "LEADER_NOT_AVAILABLE"}).matches(facts)


def test_a_rule_without_an_api_leaves_the_begin_of_connections_alone() -> None:
    facts = RequestFacts("ApiVersions", 3)
    assert not parse_rule({"error": "UNKNOWN_SERVER_ERROR"}).matches(facts)
    assert parse_rule({"api": "ApiVersions", "error": "UNKNOWN_SERVER_ERROR"}).matches(facts)


def choose(faults: Faults, count: int, facts: RequestFacts = PRODUCE) -> str:
    """Return a letter for each request: x for one that a rule was applied to."""
    return "".join("." if faults.choose(facts) is None else "x" for _ in range(count))


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({}, "xxxxxxxx"),
        ({"times": 2}, "xx......"),
        ({"after": 3}, "...xxxxx"),
        ({"every": 3}, "x..x..x."),
        ({"after": 1, "every": 2, "times": 2}, ".x.x...."),
        ({"pause_ms": 5, "delay_ms": None}, "x......."),
        ({"pause_ms": 5, "times": 2, "delay_ms": None}, "xx......"),
    ],
)
def test_a_rule_chooses_by_number(fields: dict[str, Any], chosen: str) -> None:
    faults = Faults()
    faults.add(**{"delay_ms": 1, **fields})
    assert choose(faults, 8) == chosen
    assert faults.counts == {1: FaultCounts(8, chosen.count("x"))}


def test_a_random_share_is_the_same_for_the_same_seed() -> None:
    def play(seed_of_all: int, **fields: Any) -> str:
        faults = Faults(seed_of_all)
        faults.add(delay_ms=1, share=0.3, **fields)
        return choose(faults, 1000)

    assert play(1) == play(1) != play(2)
    assert play(1, seed=7) == play(2, seed=7) != play(1)
    assert 250 < play(1).count("x") < 350


def test_the_first_rule_that_chooses_a_request_is_applied_alone() -> None:
    faults = Faults()
    faults.add(api="Fetch", drop=True)
    first = faults.add(api="Produce", error="REQUEST_TIMED_OUT", times=1)
    second = faults.add(delay_ms=5)
    assert [faults.choose(PRODUCE), faults.choose(PRODUCE)] == [
        parse_rule({"api": "Produce", "error": "REQUEST_TIMED_OUT", "times": 1}),
        parse_rule({"delay_ms": 5}),
    ]
    assert faults.counts[first] == FaultCounts(2, 1)
    assert faults.counts[second] == FaultCounts(1, 1)


def test_rules_are_listed_as_they_were_given_and_removed() -> None:
    faults = Faults(seed=3)
    faults.add(api="Produce", topic="orders", error="NOT_LEADER_OR_FOLLOWER", times=2)
    other = faults.add(disconnect=True)
    faults.choose(PRODUCE)
    assert faults.list() == [
        {
            **{"id": 1, "api": "Produce", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "times": 2},
            **{"matched": 1, "applied": 1},
        },
        {"id": 2, "disconnect": True, "matched": 0, "applied": 0},
    ]
    faults.remove(other)
    with pytest.raises(FaultError, match="there is no rule 2"):
        faults.remove(other)
    assert faults and len(faults.list()) == 1
    faults.clear()
    assert not faults
    assert faults.add(drop=True) == 1


def test_a_rule_about_records_waits_for_a_response_with_records() -> None:
    faults = Faults()
    faults.add(topic="orders", corrupt_crc=True, times=1)
    facts = RequestFacts("Fetch", 12, targets=[RequestTarget("orders", 0)])
    assert faults.choose(facts) is None
    assert faults.choose_records(RequestFacts("Fetch", 12)) is None
    assert faults.counts[1] == FaultCounts(0, 0)
    assert faults.choose_records(facts) is not None
    assert faults.choose_records(facts) is None


def test_an_error_is_not_carried_out_unless_the_rule_says_so() -> None:
    rule = parse_rule({"error": "REQUEST_TIMED_OUT"})
    assert (rule.error, rule.carry_out) == (ErrorCode.REQUEST_TIMED_OUT, False)
    assert parse_rule({"error": "REQUEST_TIMED_OUT", "carry_out": True}).carry_out
    assert parse_rule({"drop": True}).carry_out
    assert not parse_rule({"drop": True, "carry_out": False}).carry_out
    assert not parse_rule({"disconnect": True}).carry_out


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "the rule does nothing: give it delay_ms or one of error, drop,"),
        ({"drop": True, "error": "REQUEST_TIMED_OUT"}, "one action, and this one has error and drop: write two rules"),
        ({"topci": "t", "drop": True}, r"'topci' is no field of a rule \(did you mean topic\?\)"),
        ({"drop": False}, "drop=False: it takes true, or is left out"),
        ({"delay_ms": "5"}, "delay_ms='5': it takes a number from 1 to 86400000"),
        ({"delay_ms": True}, "delay_ms=True: it takes a number"),
        ({"delay_ms": -1}, "delay_ms=-1: it takes a number"),
        ({"drop": True, "times": 0}, "times=0: it takes a number from 1"),
        ({"drop": True, "every": 0}, "every=0: it takes a number from 1"),
        ({"drop": True, "after": -1}, "after=-1: it takes a number from 0"),
        ({"drop": True, "share": 0}, "share=0: it takes a number above 0 and up to 1"),
        ({"drop": True, "share": 1.5}, "share=1.5: it takes"),
        ({"drop": True, "api": []}, "api=.*: it takes the name of an API or a list of names"),
        ({"drop": True, "api": "Produces"}, r"api=Produces: no broker serves an API of this name \(did you mean Produce\?\)"),
        ({"drop": True, "api": "SaslHandshake"}, "no rule sees the requests of an authentication"),
        ({"drop": True, "api": "Produce", "versions": "99+"}, "it can never match, because Produce has 0-13"),
        ({"drop": True, "versions": "x"}, "versions=x: write 3, 0-4 or 3+"),
        ({"drop": True, "versions": "5-3"}, "versions=5-3: the range has no version"),
        ({"drop": True, "topic": "a b"}, "topic=a b: it can never match, because no topic may have this name"),
        ({"drop": True, "api": "Heartbeat", "topic": "t"}, "it can never match, because requests of Heartbeat name no topics"),
        ({"drop": True, "api": "ListGroups", "partition": 1}, "partition=1: it can never match"),
        ({"error": "NOT_LEADER"}, "error=NOT_LEADER: the protocol has no error of this name"),
        ({"error": "NONE"}, "error=NONE: the protocol has no error"),
        ({"api": "Produce", "corrupt_crc": True}, "it can never apply, because responses of Produce have no records: use Fetch"),
        ({"api": "WriteTxnMarkers", "throttle_ms": 5}, "because responses of WriteTxnMarkers have no throttle time"),
        ({"api": "Produce", "versions": "0", "throttle_ms": 5}, "because responses of Produce have no throttle time"),
        ({"drop": True, "principal": "alice"}, "principal=alice: it can never match: write User:alice"),
        ({"pause_ms": 5, "delay_ms": 5}, "delay_ms: it has no effect beside pause_ms: leave it out"),
        ({"drop": True, "carry_out": False, "delay_ms": 5}, "delay_ms: it has no effect beside drop"),
        ({"throttle_ms": 5, "carry_out": False}, "carry_out: it is for error, drop and disconnect"),
        ({"move_leader": True, "topic": "t", "partition": 0}, "a single broker leads every partition itself"),
    ],
)  # fmt: skip
def test_a_rule_that_can_never_apply_says_so_in_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    faults = Faults()
    with pytest.raises(FaultError, match=sentence):
        faults.add(**fields)
    assert faults.list() == []


def test_a_leader_is_moved_in_a_cluster_by_a_rule_with_a_partition() -> None:
    faults = Faults(in_cluster=True)
    faults.add(topic="t", partition=0, move_leader=2)
    with pytest.raises(FaultError, match="name the partition with topic and partition"):
        faults.add(topic="t", move_leader=True)
    for pattern in ("t*", "t?"):
        with pytest.raises(FaultError, match="name the partition with topic and partition"):
            faults.add(topic=pattern, partition=0, move_leader=True)


def test_the_number_of_rules_is_bounded() -> None:
    faults = Faults()
    for _ in range(MOST_RULES):
        faults.add(drop=True)
    with pytest.raises(FaultError, match="no more are allowed"):
        faults.add(drop=True)
