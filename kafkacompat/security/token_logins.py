"""Logins of delegation tokens by SCRAM: the name is the token's id, the password the Base64 of its HMAC."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache

from kafkacompat.security.sasl.scram import TokenLogin
from kafkacompat.security.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism, derive_credential
from kafkacompat.security.tokens import TokenInfo, compute_hmac

_CACHED_CREDENTIALS = 10_000


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
