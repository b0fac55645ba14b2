"""PLAIN on the side of the server, with the messages of Apache Kafka."""

from __future__ import annotations

import pytest

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.mechanism import SaslError
from kafkacompat.security.sasl.plain import PlainServer, PlainUsers

USERS = PlainUsers({"user_alice": "alice-secret", "user_zoë": "pässword", "user_": "nameless", "other": "x"})


def test_a_password() -> None:
    server = PlainServer(USERS)
    assert server.evaluate(b"\0alice\0alice-secret") == b""
    assert server.principal == Principal("User", "alice") and server.expires_at_ms is None
    server = PlainServer(USERS)
    server.evaluate("zoë\0zoë\0pässword".encode())
    assert server.principal == Principal("User", "zoë")


@pytest.mark.parametrize(
    ("token", "reason", "is_told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password", True),
        (b"\0mallory\0alice-secret", "Authentication failed: Invalid username or password", True),
        (b"\0alice\0alice-secret\0more", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", True),
        (b"\0alice\0alice-secret\0more\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", True),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2", True),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
            True,
        ),
        (b"\0\0nameless", "Authentication failed: username not specified", True),
        (b"\0alice\0", "Authentication failed: password not specified", True),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", True),
        (b"\xff\xfe", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", True),
    ],
)
def test_refusals(token: bytes, reason: str, is_told: bool) -> None:
    server = PlainServer(USERS)
    with pytest.raises(SaslError) as refused:
        server.evaluate(token)
    assert str(refused.value) == reason
    assert refused.value.client_message == (reason if is_told else None)
    assert server.principal is None


def test_no_password_is_shown_or_kept() -> None:
    assert len(USERS) == 3
    assert "secret" not in repr(USERS) and "secret" not in repr(vars(USERS))
