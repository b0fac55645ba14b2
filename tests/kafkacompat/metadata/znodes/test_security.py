"""The notifications of changed ACLs."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes import security
from kafkacompat.metadata.znodes.security import AclChange

ACL_CHANGE = "/kafka-acl-changes/acl_changes_0000000000"
EXTENDED_ACL_CHANGE = "/kafka-acl-extended-changes/acl_changes_0000000000"


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
