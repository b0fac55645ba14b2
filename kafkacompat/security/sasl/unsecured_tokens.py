"""Unsecured bearer tokens (``"alg":"none"``): anybody can make one, so they are for trials only.

A listener accepts them only if the options of its login module say so, see `UnsecuredRules.read`. The rules are those of Kafka's
OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from kafkacompat.security.jaas import JaasError
from kafkacompat.security.sasl.oauthbearer import BearerToken, TokenError

OPTION_PREFIX = "unsecured"
"""Prefix of the options of which any one allows unsecured tokens."""


class UnsecuredRules(NamedTuple):
    """What an unsecured token must claim."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def read(cls, options: Mapping[str, str]) -> UnsecuredRules | None:
        """Read the options of a login module; None if none of them allows unsecured tokens. Raises JaasError."""
        if not any(name.startswith(OPTION_PREFIX) for name in options):
            return None
        prefix = f"{OPTION_PREFIX}Validator"
        skew = options.get(f"{prefix}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise JaasError(f"{prefix}AllowableClockSkewMs is not a whole number of 0 or more")
        return cls(
            options.get(f"{prefix}PrincipalClaimName", "").strip() or "sub",
            options.get(f"{prefix}ScopeClaimName", "").strip() or "scope",
            tuple(options.get(f"{prefix}RequiredScope", "").split()),
            int(skew),
        )


def check_unsecured_token(token: str, rules: UnsecuredRules, now_ms: Callable[[], int]) -> BearerToken:
    """Check an unsecured token; raises TokenError."""
    claims = _read_claims(token)
    subject, expiry_s = claims.get(rules.principal_claim), claims.get("exp")
    if not isinstance(subject, str) or not subject.strip():
        raise TokenError(f"it has no text as the claim {rules.principal_claim}")
    if not is_number(expiry_s):
        raise TokenError("it has no number as the claim exp")
    expires_at_ms = round(expiry_s * 1000)
    _check_times(claims.get("iat"), expires_at_ms, now_ms(), rules.clock_skew_ms)
    _check_scope(claims.get(rules.scope_claim), rules.required_scope)
    return BearerToken(subject, expires_at_ms)


def _read_claims(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or ".." in token:
        raise TokenError("it does not have three parts")
    if decode_json_part(parts[0]).get("alg") != "none" or parts[2]:
        raise TokenError("it is not unsecured: alg is not none, or it has a signature")
    return decode_json_part(parts[1])


def decode_json_part(part: str) -> dict[str, Any]:
    """Decode the header or the claims of a token; raises TokenError."""
    try:
        data = base64.b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4), altchars=b"-_", validate=True)
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise TokenError("a part of it is not JSON in Base64") from None
    if not isinstance(value, dict):
        raise TokenError("a part of it is no JSON object")
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a claim is a number that can be a time in seconds."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _check_times(issued_s: Any, expires_at_ms: int, now_ms: int, skew_ms: int) -> None:
    if now_ms - skew_ms >= expires_at_ms:
        raise TokenError("it has expired")
    if issued_s is None:
        return
    if not is_number(issued_s):
        raise TokenError("its claim iat is no number")
    issued_ms = round(issued_s * 1000)
    if issued_ms > now_ms + skew_ms:
        raise TokenError("it was issued in the future")
    if expires_at_ms <= issued_ms:
        raise TokenError("it expires before it was issued")


def _check_scope(claimed: Any, required: tuple[str, ...]) -> None:
    scopes = {claimed.strip()} if isinstance(claimed, str) else set()
    if isinstance(claimed, list):
        scopes = {str(scope).strip() for scope in claimed}
    if not scopes.issuperset(required):
        raise TokenError("it lacks a required scope", "insufficient_scope", f"[{', '.join(required)}]")
