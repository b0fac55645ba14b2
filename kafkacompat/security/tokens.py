"""Delegation tokens (KIP-48): what a token is, and the secret by which its bearer authenticates itself.

The secret is the HMAC of the token's id under ``delegation.token.secret.key``. No broker stores it: each computes it when needed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.scram import TokenLogin
from kafkacompat.security.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, derive_credential

_CACHED_CREDENTIALS = 10_000


class TokenInfo(NamedTuple):
    """A token without its secret; times in milliseconds since the epoch.

    ``expires_at_ms`` moves with each renewal, up to ``ends_at_ms``. ``requester`` has created the token for the owner (KIP-373).
    """

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_at_ms: int
    expires_at_ms: int
    ends_at_ms: int

    def may_be_renewed_by(self, principal: Principal) -> bool:
        """Return whether a user may renew and expire the token; tokens do not count as other users."""
        return principal[:2] in (self.owner[:2], *(renewer[:2] for renewer in self.renewers))

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the token is of no use any more."""
        return self.ends_at_ms < now_ms or self.expires_at_ms < now_ms


def compute_hmac(token_id: str, secret_key: str) -> bytes:
    """Return a token's secret: HMAC-SHA512 of its id, as Kafka computes it."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def find_by_hmac(tokens: Mapping[str, TokenInfo], secret: bytes, secret_key: str) -> TokenInfo | None:
    """Return the token that has this secret."""
    for token in tokens.values():
        if hmac.compare_digest(compute_hmac(token.token_id, secret_key), secret):
            return token
    return None


class TokenLogins:
    """The logins of tokens by SCRAM. Hashing a secret takes milliseconds, so the last results are kept.

    ``new_salt`` returns random bytes; ``tokens`` returns the tokens known now.
    """

    def __init__(
        self,
        secret_key: str,
        tokens: Callable[[], Mapping[str, TokenInfo]],
        new_salt: Callable[[], bytes],
        now_ms: Callable[[], int],
    ) -> None:
        self._secret_key = secret_key
        self._tokens = tokens
        self._new_salt = new_salt
        self._now_ms = now_ms
        self._derive = lru_cache(maxsize=_CACHED_CREDENTIALS)(self._derive_credential)

    def find(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return the login of a token that has not expired."""
        token = self._tokens().get(token_id)
        if token is None or token.has_expired(self._now_ms()):
            return None
        return TokenLogin(token.owner, self._derive(mechanism, token_id), token.expires_at_ms)

    def _derive_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        password = base64.b64encode(compute_hmac(token_id, self._secret_key))
        salt = self._new_salt()
        salted = hashlib.pbkdf2_hmac(mechanism.digest, password, salt, MIN_ITERATIONS)
        return derive_credential(mechanism, salt, salted, MIN_ITERATIONS)
