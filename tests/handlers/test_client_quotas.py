"""AlterClientQuotas and DescribeClientQuotas, answered as Apache Kafka 4.3.1 answers them."""

from __future__ import annotations

import math

import pytest

from kafkacompat.metadata import codec
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import outcome

Names = dict[str, "str | None"]
Ops = dict[str, "float | None"]
EXACT, DEFAULT, ANY = range(3)
PRODUCE, CONSUME, PERCENTAGE, CONNECTIONS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "connection_creation_rate",
)
REFUSED = ErrorCode.INVALID_REQUEST


def make_entry(names: Names, ops: Ops) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()],
    )


def alter(node: AdminNode, *entries: EntryData, validate_only: bool = False, version: int = 1) -> list[int]:
    """The error codes; every error has a message, and success has none."""
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answers = node.ask(request, AlterClientQuotasResponse, version).entries
    assert all((answer.error_message is None) == (answer.error_code == 0) for answer in answers)
    return [answer.error_code for answer in answers]


def describe(
    node: AdminNode, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> dict[str, dict[str, float]] | int:
    """The quotas by entity, or the error code."""
    wanted = [ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components]
    request = DescribeClientQuotasRequest(components=wanted, strict=strict)
    answer = node.ask(request, DescribeClientQuotasResponse, version)
    if answer.entries is None:
        assert answer.error_message
        return answer.error_code
    return {
        " ".join(f"{part.entity_type}={part.entity_name}" for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_set_changed_removed_and_described(version: int) -> None:
    node = AdminNode()
    assert alter(node, make_entry({"user": "alice"}, {PRODUCE: 1000.0, PERCENTAGE: 12.5}), version=version) == [0]
    assert describe(node, version=version) == {"user=alice": {PRODUCE: 1000.0, PERCENTAGE: 12.5}}
    assert alter(node, make_entry({"user": "alice"}, {PRODUCE: 7.0, PERCENTAGE: None}), version=version) == [0]
    assert describe(node, version=version) == {"user=alice": {PRODUCE: 7.0}}
    assert alter(node, make_entry({"user": "alice"}, {PRODUCE: None, "frobnicate": None})) == [0]
    assert describe(node) == {}
    assert node.holder.image.clients == {}


def test_quotas_are_in_the_store() -> None:
    node = AdminNode()
    alter(
        node,
        make_entry({"user": "alice", "client-id": None}, {PRODUCE: 1000.0}),
        make_entry({"ip": None}, {CONNECTIONS: 7.0}),
    )
    stored = outcome(node.store.load())
    assert {key for key in stored if key.startswith("/config")} == {
        "/config/users/alice/clients/<default>",
        "/config/ips/<default>",
    }
    assert codec.decode_image(stored).clients == node.holder.image.clients


def test_validate_only_changes_nothing() -> None:
    node = AdminNode()
    assert alter(node, make_entry({"user": "a"}, {PRODUCE: 1.0}), validate_only=True) == [0]
    assert alter(node, make_entry({"user": "a"}, {PRODUCE: -1.0}), validate_only=True) == [REFUSED]
    assert describe(node) == {}


@pytest.mark.parametrize(
    ("names", "key", "value", "code"),
    [
        ({"user": "a"}, PRODUCE, 0.0, REFUSED),
        ({"user": "a"}, PRODUCE, -1.0, REFUSED),
        ({"user": "a"}, PRODUCE, 1.5, REFUSED),
        ({"user": "a"}, PRODUCE, 7.0000001, 0),
        ({"user": "a"}, PRODUCE, 2.0**63, 0),
        ({"user": "a"}, PRODUCE, 1e19, REFUSED),
        ({"user": "a"}, PRODUCE, math.inf, REFUSED),
        ({"user": "a"}, PRODUCE, math.nan, REFUSED),
        ({"user": "a"}, PERCENTAGE, math.inf, 0),
        ({"user": "a"}, PERCENTAGE, math.nan, REFUSED),
        ({"user": "a"}, "controller_mutation_rate", 0.25, 0),
        ({"user": "a"}, CONNECTIONS, 1.0, REFUSED),
        ({"user": "a"}, "", 1.0, REFUSED),
        ({"ip": "10.0.0.1"}, CONNECTIONS, 7.0, 0),
        ({"ip": "2001:db8::1"}, CONNECTIONS, 7.0, 0),
        ({"ip": "10.0.0.1"}, CONNECTIONS, 2.0**31, REFUSED),
        ({"ip": "10.0.0.1"}, PRODUCE, 1.0, REFUSED),
        ({"ip": "localhost.invalid"}, CONNECTIONS, 7.0, REFUSED),
        ({"ip": "10.0.0.1", "user": "a"}, CONNECTIONS, 7.0, REFUSED),
        ({"ip": "10.0.0.1", "client-id": "a"}, CONNECTIONS, 7.0, REFUSED),
        ({}, PRODUCE, 1.0, REFUSED),
        ({"team": "a"}, PRODUCE, 1.0, REFUSED),
        ({"user": "a", "team": "a"}, PRODUCE, 1.0, REFUSED),
        ({"user": ""}, PRODUCE, 1.0, REFUSED),
        ({"user": "<default>"}, PRODUCE, 1.0, 0),
    ],
)
def test_which_quotas_may_be(names: Names, key: str, value: float, code: int) -> None:
    node = AdminNode()
    assert alter(node, make_entry(names, {key: value})) == [code]
    expected = {} if code else {" ".join(f"{kind}={name}" for kind, name in sorted(names.items())): {key: value}}
    assert describe(node) == expected


def test_one_bad_quota_leaves_its_entity_alone_and_no_other() -> None:
    node = AdminNode()
    bad, good = make_entry({"user": "a"}, {PRODUCE: 1.0, "frobnicate": 1.0}), make_entry({"user": "b"}, {PRODUCE: 2.0})
    assert alter(node, bad, good) == [REFUSED, 0]
    assert describe(node) == {"user=b": {PRODUCE: 2.0}}


def test_a_quota_named_twice_is_refused() -> None:
    node = AdminNode()
    twice = make_entry({"user": "a"}, {PRODUCE: 1.0})
    twice.ops.append(OpData(key=PRODUCE, remove=True))
    assert alter(node, twice) == [REFUSED]
    assert describe(node) == {}
    # The first of two alterations is made, and both together get one answer.
    assert alter(node, make_entry({"user": "a"}, {PRODUCE: 1.0}), make_entry({"user": "a"}, {PRODUCE: 2.0})) == [
        REFUSED
    ]
    assert describe(node) == {"user=a": {PRODUCE: 1.0}}
    types = make_entry({"user": "b"}, {PRODUCE: 3.0})
    types.entity.append(EntityData(entity_type="user", entity_name="c"))
    assert alter(node, types) == [0]
    assert describe(node, ("user", EXACT, "c")) == {"user=c": {PRODUCE: 3.0}}


ENTITIES: list[Names] = [
    {"user": "a"},
    {"user": None},
    {"client-id": "a"},
    {"client-id": None, "user": "a"},
    {"client-id": "a", "user": None},
    {"ip": "10.0.0.1"},
    {"ip": None},
]


@pytest.mark.parametrize(
    ("components", "strict", "numbers"),
    [
        ([], False, [0, 1, 2, 3, 4, 5, 6]),
        ([], True, []),
        ([("user", ANY, None)], False, [0, 1, 3, 4]),
        ([("user", ANY, None)], True, [0, 1]),
        ([("user", DEFAULT, None)], False, [1, 4]),
        ([("user", DEFAULT, None)], True, [1]),
        ([("user", EXACT, "a")], False, [0, 3]),
        ([("user", EXACT, "a")], True, [0]),
        ([("user", EXACT, "b")], False, []),
        ([("user", EXACT, "")], False, []),
        ([("client-id", ANY, None), ("user", ANY, None)], True, [3, 4]),
        ([("client-id", EXACT, "a"), ("user", DEFAULT, None)], False, [4]),
        ([("ip", ANY, None)], True, [5, 6]),
        ([("ip", DEFAULT, None)], False, [6]),
    ],
)
def test_describe_filters_entities(
    components: list[tuple[str, int, str | None]], strict: bool, numbers: list[int]
) -> None:
    node = AdminNode()
    wanted = [(names, CONNECTIONS if "ip" in names else PRODUCE) for names in ENTITIES]
    assert set(alter(node, *(make_entry(names, {key: 1.0}) for names, key in wanted))) == {0}
    described = describe(node, *components, strict=strict)
    assert isinstance(described, dict)
    names = [" ".join(f"{kind}={name}" for kind, name in entity.items()) for entity in ENTITIES]
    assert sorted(described) == sorted(names[number] for number in numbers)


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("team", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("", ANY, None)], REFUSED),
        ([("user", ANY, None), ("user", EXACT, "a")], REFUSED),
        ([("user", EXACT, "a"), ("user", ANY, None)], REFUSED),
        ([("user", EXACT, None)], REFUSED),
        ([("user", DEFAULT, "a")], REFUSED),
        ([("user", ANY, "a")], REFUSED),
        ([("user", 3, None)], REFUSED),
        ([("ip", ANY, None), ("user", ANY, None)], REFUSED),
    ],
)
def test_filters_that_cannot_be(components: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
    assert describe(AdminNode(), *components) == code


def test_too_many_changes_are_refused_as_a_whole() -> None:
    node = AdminNode()
    entries = [make_entry({"user": str(number)}, {PRODUCE: 1.0, CONSUME: 1.0}) for number in range(5001)]
    assert set(alter(node, *entries)) == {ErrorCode.POLICY_VIOLATION}
    assert describe(node) == {}
    assert set(alter(node, *entries[1:])) == {0}


def test_a_failing_store_is_reported_for_every_entity() -> None:
    node = AdminNode()
    node.store.failing = True
    codes = alter(node, make_entry({"user": "a"}, {PRODUCE: 1.0}), make_entry({"user": "b"}, {PRODUCE: 1.0}))
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert describe(node) == {}
