"""The filters of DescribeAcls and DeleteAcls."""

from __future__ import annotations

import pytest

from kafkacompat.security.acls.filters import AclFilter
from kafkacompat.security.acls.model import ANY, MATCH, Acl
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.security.acls.rules import build_table

RULES = (
    "+alice READ TOPIC orders",
    "-alice WRITE TOPIC orders from 10.0.0.1",
    "+bob READ TOPIC or...",
    "+bob READ TOPIC *",
    "+bob READ TOPIC payments",
    "+alice READ GROUP orders",
)
ANYTHING = AclFilter(ANY, None, ANY, None, None, ANY, ANY)
TOPIC, LITERAL, PREFIXED = 2, 3, 4


def find(**fields: object) -> set[str]:
    return {_write(acl) for acl in ANYTHING._replace(**fields).find(build_table(*RULES))}  # type: ignore[arg-type]


def _write(acl: Acl) -> str:
    (kind, pattern_type, name), rule = acl
    sign = "+" if rule.permission.name == "ALLOW" else "-"
    ending = "..." if pattern_type.name == "PREFIXED" else ""
    place = "" if rule.host == "*" else f" from {rule.host}"
    return f"{sign}{rule.principal.partition(':')[2]} {rule.operation.name} {kind.name} {name}{ending}{place}"


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({}, RULES),
        ({"pattern_type": MATCH}, RULES),
        ({"resource_type": 3}, RULES[5:]),
        ({"name": "orders"}, (*RULES[:2], RULES[5])),
        ({"name": "orders", "resource_type": TOPIC}, RULES[:2]),
        ({"name": "orders", "resource_type": TOPIC, "pattern_type": MATCH}, RULES[:4]),
        ({"name": "orders", "pattern_type": MATCH}, (*RULES[:4], RULES[5])),
        ({"name": "orders", "resource_type": TOPIC, "pattern_type": PREFIXED}, ()),
        ({"name": "or", "resource_type": TOPIC, "pattern_type": PREFIXED}, RULES[2:3]),
        ({"name": "or", "resource_type": TOPIC}, RULES[2:3]),
        ({"name": "*", "resource_type": TOPIC, "pattern_type": MATCH}, RULES[3:4]),
        ({"name": "*", "resource_type": TOPIC, "pattern_type": LITERAL}, RULES[3:4]),
        ({"pattern_type": PREFIXED}, RULES[2:3]),
        ({"principal": "User:bob"}, RULES[2:5]),
        ({"host": "10.0.0.1"}, RULES[1:2]),
        ({"operation": 4}, RULES[1:2]),
        ({"permission": 2}, RULES[1:2]),
    ],
)
def test_what_a_filter_selects(fields: dict[str, object], rules: tuple[str, ...]) -> None:
    assert find(**fields) == set(rules)


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 0},
        {"resource_type": 8},
        {"pattern_type": 0},
        {"pattern_type": 9},
        {"operation": 0},
        {"permission": 0},
    ],
)
def test_codes_that_nothing_has(fields: dict[str, int]) -> None:
    with pytest.raises(KafkaError, match="that a filter may have") as caught:
        ANYTHING._replace(**fields).check()  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    ANYTHING.check()
