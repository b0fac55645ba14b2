"""Changes of delegation tokens, by the rules of Kafka's controller, on a draft.

Each raises KafkaError with Kafka's code: DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND,
DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED, INVALID_PRINCIPAL_TYPE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.security.principals import USER_TYPE, Principal
from kafkacompat.security.tokens import TokenInfo, compute_hmac, find_by_hmac
from kafkacompat.wire.errors import ErrorCode, KafkaError


class TokenRules(NamedTuple):
    """The properties delegation.token...; the representation shows no key."""

    secret_key: str
    max_lifetime_ms: int
    renewal_ms: int

    @classmethod
    def read(cls, config: BrokerConfig) -> TokenRules:
        """Read the properties; raises KafkaError if there are no tokens without a secret key."""
        secret_key = config.optional_string("delegation.token.secret.key")
        if not secret_key:
            reason = "delegation.token.secret.key is not set, so that there are no delegation tokens"
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, reason)
        return cls(
            secret_key,
            config.int("delegation.token.max.lifetime.ms"),
            config.int("delegation.token.expiry.time.ms"),
        )

    def __repr__(self) -> str:
        return f"TokenRules(max_lifetime_ms={self.max_lifetime_ms}, renewal_ms={self.renewal_ms}, the key is secret)"

    def compute_hmac(self, token_id: str) -> bytes:
        """Return a token's secret."""
        return compute_hmac(token_id, self.secret_key)


class NewToken(NamedTuple):
    """A token to create; a ``max_lifetime_ms`` that is not positive stands for the longest."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: Sequence[Principal]
    max_lifetime_ms: int


def create_token(draft: MetadataDraft, rules: TokenRules, wanted: NewToken, now_ms: int) -> TokenInfo:
    """Create a token."""
    if any(renewer.kind != USER_TYPE for renewer in wanted.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, f"a renewer's type is not {USER_TYPE}")
    lifetime_ms = min(wanted.max_lifetime_ms, rules.max_lifetime_ms)
    ends_at_ms = now_ms + (lifetime_ms if wanted.max_lifetime_ms > 0 else rules.max_lifetime_ms)
    token = TokenInfo(
        wanted.token_id,
        wanted.owner._replace(by_token=False),
        wanted.requester._replace(by_token=False),
        tuple(wanted.renewers),
        now_ms,
        min(ends_at_ms, now_ms + rules.renewal_ms),
        ends_at_ms,
    )
    draft.put_token(token)
    return token


def renew_token(
    draft: MetadataDraft, rules: TokenRules, requester: Principal, secret: bytes, renewal_ms: int, now_ms: int
) -> int:
    """Renew the token that has a secret; return when it expires. A period that is not positive stands for the longest."""
    token = _find_own_token(draft, rules, requester, secret)
    _refuse_expired(token, now_ms)
    period_ms = min(renewal_ms, rules.renewal_ms) if renewal_ms > 0 else rules.renewal_ms
    return _set_expiry(draft, token, now_ms + period_ms)


def expire_token(
    draft: MetadataDraft, rules: TokenRules, requester: Principal, secret: bytes, period_ms: int, now_ms: int
) -> int:
    """Let the token that has a secret expire after a period, at once if that is negative; return when it expires."""
    token = _find_own_token(draft, rules, requester, secret)
    if period_ms < 0:
        draft.remove_token(token.token_id)
        return now_ms
    _refuse_expired(token, now_ms)
    return _set_expiry(draft, token, now_ms + period_ms)


def remove_expired_tokens(draft: MetadataDraft, now_ms: int) -> list[TokenInfo]:
    """Remove the tokens that are of no use any more; return them."""
    expired = [token for token in draft.tokens.values() if token.has_expired(now_ms)]
    for token in expired:
        draft.remove_token(token.token_id)
    return expired


def _find_own_token(draft: MetadataDraft, rules: TokenRules, requester: Principal, secret: bytes) -> TokenInfo:
    token = find_by_hmac(draft.tokens, secret, rules.secret_key)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no token has this secret")
    if not token.may_be_renewed_by(requester):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, f"{requester} neither owns nor renews the token")
    return token


def _refuse_expired(token: TokenInfo, now_ms: int) -> None:
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, f"the token {token.token_id} has expired")


def _set_expiry(draft: MetadataDraft, token: TokenInfo, expires_at_ms: int) -> int:
    renewed = token._replace(expires_at_ms=min(token.ends_at_ms, expires_at_ms))
    draft.put_token(renewed)
    return renewed.expires_at_ms
