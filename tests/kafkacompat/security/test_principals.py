"""Principals, in Kafka's notation and in Envelopes."""

from __future__ import annotations

import pytest

from kafkacompat.security.principals import ANONYMOUS, Principal, pack_principal, parse_principal, unpack_principal


@pytest.mark.parametrize("text", ["User:ANONYMOUS", "User:CN=alice,O=x", "User:a:b", "Group:ä"])
def test_notation(text: str) -> None:
    assert str(parse_principal(text)) == text


@pytest.mark.parametrize("text", ["", "User", "User:", ":alice"])
def test_incomplete_principals(text: str) -> None:
    with pytest.raises(ValueError, match="it takes the form User:NAME"):
        parse_principal(text)


@pytest.mark.parametrize("principal", [ANONYMOUS, Principal("User", "ä", by_token=True)])
def test_envelopes_keep_principals(principal: Principal) -> None:
    assert unpack_principal(pack_principal(principal)) == principal
