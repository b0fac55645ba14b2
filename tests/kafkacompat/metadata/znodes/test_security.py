"""Delegation tokens, and the notifications of changed tokens and ACLs."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import security
from kafkacompat.metadata.znodes.security import AclChange, DelegationToken

TOKEN = DelegationToken("abc", "User:alice", "User:bob", ("User:c d",), 1000, 3000, 2000)
ACL_CHANGE = "/kafka-acl-changes/acl_changes_0000000000"
EXTENDED_ACL_CHANGE = "/kafka-acl-extended-changes/acl_changes_0000000000"


def test_a_token_in_version_3() -> None:
    value = security.encode_token(TOKEN)
    assert json.loads(value) == {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3Ac%20d"],
        "issueTimestamp": 1000,
        "maxTimestamp": 3000,
        "expiryTimestamp": 2000,
        "tokenId": "abc",
    }
    assert security.decode_token("abc", value) == TOKEN


def test_a_token_without_requester() -> None:
    stored = {**json.loads(security.encode_token(TOKEN)), "version": 2}
    del stored["tokenRequester"]
    assert security.decode_token("abc", json.dumps(stored).encode()) == TOKEN._replace(requester="User:alice")


def test_a_changed_token() -> None:
    assert security.encode_token_change("abc") == b"abc"
    assert security.decode_token_change("/delegation_token/token_changes/token_change_0000000000", b"abc") == "abc"


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
    with pytest.raises(StoreError, match=r'damaged at /delegation_token/tokens/abc: it has no "owner"'):
        security.decode_token("abc", b"{}")
