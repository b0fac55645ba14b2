"""Signed bearer tokens (JWT, RFC 7519), checked with the public keys of an identity provider (JWKS, RFC 7517).

PyJWT checks the signature, the audience and the issuer; the times are checked here by the clock that is passed in. Only algorithms
with public keys are accepted: a key set that is public must not hold the key of an HMAC.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeGuard

import jwt

from kafkacompat.security.sasl.oauthbearer import BearerToken, TokenError
from kafkacompat.security.sasl.settings import SignedRules

log = logging.getLogger(__name__)

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The accepted algorithms by the type of a key."""
_ALL_ALGORITHMS = tuple(chain.from_iterable(ALGORITHMS.values()))
MAX_KEYS = 1000
MAX_KEY_ID = 250
"""Length of the longest key id that leads to a fetch of the keys, as in Kafka."""
MAX_CLAIMED_S = 1e11


class KeySet:
    """The public keys of an identity provider."""

    def __init__(self, keys: list[Mapping[str, Any]]) -> None:
        self._keys = keys
        self._made: dict[tuple[int, str], jwt.PyJWK | None] = {}

    @classmethod
    def parse(cls, text: str | bytes) -> KeySet:
        """Parse a JWKS; raises ValueError, one sentence. Keys of other kinds are left out."""
        try:
            listed = json.loads(text)["keys"]
            keys = [key for key in listed if key["kty"] in ALGORITHMS and key.get("use", "sig") == "sig"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError("it is no JSON Web Key Set") from None
        if not keys or len(keys) > MAX_KEYS:
            raise ValueError(f"it has {len(keys)} keys for signatures; it needs 1 to {MAX_KEYS}")
        return cls(keys)

    def find(self, key_id: str | None, algorithm: str) -> list[jwt.PyJWK]:
        """Return the keys that a token's header may mean: that of its id, or every one that fits the algorithm."""
        fitting = [
            self._make(number, algorithm)
            for number, key in enumerate(self._keys)
            if algorithm in ALGORITHMS[key["kty"]]
            and (key_id is None or key.get("kid") == key_id)
            and key.get("alg", algorithm) == algorithm
        ]
        return [key for key in fitting if key is not None]

    def _make(self, number: int, algorithm: str) -> jwt.PyJWK | None:
        """Return a key, which is read at its first use; None for one that cannot be."""
        if (number, algorithm) not in self._made:
            self._made[number, algorithm] = _make_key(self._keys[number], algorithm)
        return self._made[number, algorithm]


def _make_key(key: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    try:
        return jwt.PyJWK(dict(key), algorithm)
    except jwt.PyJWTError as problem:
        log.warning("A key of the JWKS is left out: %s", problem)
        return None


class SignedTokens:
    """Checks signed tokens. ``keys`` returns the keys known now, ``on_unknown_key`` learns the id of a key that is missing."""

    def __init__(
        self,
        rules: SignedRules,
        keys: Callable[[], KeySet | None],
        now_ms: Callable[[], int],
        on_unknown_key: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._rules = rules
        self._keys = keys
        self._now_ms = now_ms
        self._on_unknown_key = on_unknown_key

    def check(self, token: str) -> BearerToken:
        """Check a token; raises TokenError."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise TokenError("it is no signed JWT") from None
        key_id, algorithm = header.get("kid"), header.get("alg")
        known = self._keys()
        if known is None:
            raise TokenError("the keys of the identity provider are not known yet")
        candidates = known.find(key_id, algorithm) if isinstance(algorithm, str) else []
        if not candidates:
            if isinstance(key_id, str) and len(key_id) <= MAX_KEY_ID and algorithm in _ALL_ALGORITHMS:
                self._on_unknown_key(key_id)
            raise TokenError("no key of the identity provider fits it")
        return self._read(self._verify(token, candidates, str(algorithm)))

    def _verify(self, token: str, candidates: list[jwt.PyJWK], algorithm: str) -> dict[str, Any]:
        """Return the claims of a token that one of the keys has signed."""
        rules, problem = self._rules, TokenError("no key fits it")
        for key in candidates:
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=list(rules.audience) or None,
                    issuer=rules.issuer,
                    options={
                        "require": ["exp", "iat"],
                        "verify_exp": False,
                        "verify_iat": False,
                        "verify_nbf": False,
                        "verify_sub": False,
                    },
                )
            except (jwt.PyJWTError, ValueError, RecursionError) as failure:
                problem = TokenError(str(failure) or type(failure).__name__)
        raise problem

    def _read(self, claims: Mapping[str, Any]) -> BearerToken:
        rules, now_s = self._rules, self._now_ms() / 1000
        expiry_s, issued_s, not_before_s = (claims.get(name) for name in ("exp", "iat", "nbf"))
        if (
            not _is_time(expiry_s)
            or not _is_time(issued_s)
            or (not_before_s is not None and not _is_time(not_before_s))
        ):
            raise TokenError("one of its times is no number")
        if now_s - rules.clock_skew_s >= expiry_s:
            raise TokenError("it has expired")
        if not_before_s is not None and now_s + rules.clock_skew_s < not_before_s:
            raise TokenError("it is not valid yet")
        subject = claims.get(rules.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise TokenError(f"it has no text as the claim {rules.subject_claim}")
        _check_scope(claims.get(rules.scope_claim), rules.scope_claim)
        return BearerToken(subject.strip(), int(expiry_s * 1000))


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_CLAIMED_S


def _check_scope(claimed: Any, name: str) -> None:
    """Check the form of the scopes, as Kafka does; no scope is required."""
    scopes = claimed if isinstance(claimed, list) else [claimed] if isinstance(claimed, str) else []
    if not all(isinstance(scope, str) and scope.strip() for scope in scopes) or len(set(scopes)) != len(scopes):
        raise TokenError(f"its claim {name} has an empty or a repeated scope")
