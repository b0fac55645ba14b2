"""The znodes of access rules, and the notifications of their changes."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import security
from kafkacompat.metadata.znodes.security import AclChange
from kafkacompat.metadata.znodes.values import parse_fields
from tests.kafkacompat.security.acls.rules import build_table, parse_acl

RULES = build_table("+alice READ TOPIC orders", "-bob DESCRIBE_CONFIGS TOPIC orders from 10.0.0.1")
VALUE = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"},'
    b'{"principal":"User:bob","permissionType":"Deny","operation":"DescribeConfigs","host":"10.0.0.1"}]}'
)
ACL_CHANGE = "/kafka-acl-changes/acl_changes_0000000000"
EXTENDED_ACL_CHANGE = "/kafka-acl-extended-changes/acl_changes_0000000000"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("+a READ TOPIC orders", "/kafka-acl/Topic/orders"),
        ("+a READ TRANSACTIONAL_ID *", "/kafka-acl/TransactionalId/*"),
        ("+a READ DELEGATION_TOKEN t", "/kafka-acl/DelegationToken/t"),
        ("+a READ USER User:a", "/kafka-acl/User/User:a"),
        ("+a READ CLUSTER kafka-cluster", "/kafka-acl/Cluster/kafka-cluster"),
        ("+a READ GROUP a/b...", "/kafka-acl-extended/prefixed/Group/a%2Fb"),
        ("+a READ GROUP 50%", "/kafka-acl/Group/50%25"),
        ("+a READ GROUP a%2Fb", "/kafka-acl/Group/a%252Fb"),
        ("+a READ GROUP .", "/kafka-acl/Group/%2E"),
        ("+a READ GROUP grüße+1", "/kafka-acl/Group/grüße+1"),
    ],
)
def test_keys(line: str, key: str) -> None:
    pattern = parse_acl(line).pattern
    assert security.format_acl_key(pattern) == key
    assert security.parse_acl_key(key) == pattern
    assert security.find_acl_key(pattern, {}) == key


def test_keys_that_kafka_wrote() -> None:
    pattern = parse_acl("+a READ GROUP 50%").pattern
    assert security.parse_acl_key("/kafka-acl/Group/50%") == pattern
    assert security.find_acl_key(pattern, {"/kafka-acl/Group/50%"}) == "/kafka-acl/Group/50%"
    assert (
        security.find_acl_key(pattern, {"/kafka-acl/Group/50%", "/kafka-acl/Group/50%25"}) == "/kafka-acl/Group/50%25"
    )
    assert AclChange("GROUP", "50%", "LITERAL").keys == ["/kafka-acl/Group/50%25", "/kafka-acl/Group/50%"]


@pytest.mark.parametrize("key", ["/kafka-acl/Topics/a", "/kafka-acl-extended/matched/Topic/a", "/brokers/topics/a"])
def test_other_keys(key: str) -> None:
    assert security.parse_acl_key(key) is None


def test_values() -> None:
    (rules,) = (rules for _, rules in RULES.items())
    assert security.encode_rules("/p", rules) == VALUE
    assert security.read_rules(parse_fields("/p", VALUE)) == rules
    newer = VALUE.replace(b'"version":1', b'"version":2,"more":[1]')
    assert security.encode_rules("/p", rules, newer).endswith(b'"more":[1]}')


@pytest.mark.parametrize("word", ["Allow", "Read", "acls", "host", "principal"])
def test_damaged_values(word: str) -> None:
    with pytest.raises(StoreError, match="the metadata is damaged at /p"):
        security.read_rules(parse_fields("/p", VALUE.replace(word.encode(), b"Nothing")))


@pytest.mark.parametrize(
    ("path", "change", "value"),
    [
        (ACL_CHANGE, AclChange("TOPIC", "a:b", "LITERAL"), b"TOPIC:a:b"),
        (
            EXTENDED_ACL_CHANGE,
            AclChange("GROUP", "a:b", "PREFIXED"),
            b'{"version":1,"resourceType":"GROUP","name":"a:b","patternType":"PREFIXED"}',
        ),
    ],
)
def test_changed_acls(path: str, change: AclChange, value: bytes) -> None:
    assert security.encode_acl_change(change) == value
    assert security.decode_acl_change(path, value) == change


def test_changed_acls_as_releases_before_2_0_wrote_them() -> None:
    assert security.decode_acl_change(ACL_CHANGE, b"Topic:t") == AclChange("TOPIC", "t", "LITERAL")


def test_damage() -> None:
    with pytest.raises(StoreError, match=f"damaged at {ACL_CHANGE}: it is not TYPE:NAME"):
        security.decode_acl_change(ACL_CHANGE, b"Topic")
    with pytest.raises(StoreError, match=f"damaged at {ACL_CHANGE}: it has bytes that are no text"):
        security.decode_acl_change(ACL_CHANGE, b"\xff")
