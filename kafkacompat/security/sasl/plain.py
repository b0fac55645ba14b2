"""PLAIN (RFC 4616): the client sends its name and password.

Unknown users cost the same time as wrong passwords, and get the same answer. A client may not act for another user (CVE-2017-12610).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from kafkacompat.security.principals import USER_TYPE, Principal
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, LoginScope, tell_client

PARTS, MAX_PARTS = 3, 4
USER_OPTION = "user_"
"""Prefix of the JAAS options that name users: user_alice="password"."""


class PlainUsers:
    """The users of a listener and hashes of their passwords; the representation shows neither."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the users of a login module's options; others are left alone."""
        self._hashes = {
            name.removeprefix(USER_OPTION): _hash(password)
            for name, password in options.items()
            if name.startswith(USER_OPTION)
        }
        self._nobody = _hash("")

    def __len__(self) -> int:
        return len(self._hashes)

    def has_password(self, user: str, password: str) -> bool:
        """Return whether a user exists and has this password, in a time that depends on neither."""
        expected = self._hashes.get(user)
        is_same = hmac.compare_digest(_hash(password), self._nobody if expected is None else expected)
        return is_same and expected is not None


def _hash(password: str) -> bytes:
    """Return a value of fixed length to compare in constant time."""
    return hashlib.sha256(password.encode("utf-8", "surrogatepass")).digest()


class PlainServer:
    """One authentication by PLAIN."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.scope: LoginScope = ANY_LOGIN
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """See ServerMechanism.evaluate."""
        authorization_id, user, password = _split(token)
        if not user:
            raise tell_client("Authentication failed: username not specified")
        if not password:
            raise tell_client("Authentication failed: password not specified")
        name = self.scope.find_user(user)
        if not self._users.has_password(name, password):
            raise tell_client("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise tell_client(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.principal = Principal(USER_TYPE, name)
        return b""


def _split(token: bytes) -> tuple[str, str, str]:
    """Return authorization id, user and password; raises SaslError. Kafka counts at most four parts, and so does the message."""
    words = token.decode("utf-8", "replace").split("\0", MAX_PARTS - 1)
    if len(words) != PARTS:
        raise tell_client(f"Invalid SASL/PLAIN response: expected {PARTS} tokens, got {len(words)}")
    authorization_id, user, password = words
    return authorization_id, user, password
