"""Delegation tokens (KIP-48): what a token is, and the secret by which its bearer authenticates itself.

The secret is the HMAC of the token's id under ``delegation.token.secret.key``. No broker stores it: each computes it when needed.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from kafkacompat.security.principals import Principal


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
