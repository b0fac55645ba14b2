"""OAUTHBEARER (RFC 7628): the client sends a token of an identity provider.

A token that is not accepted is answered with a JSON text; the client confirms it with one byte and then receives the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from kafkacompat.security.principals import USER_TYPE, Principal
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, LoginScope, SaslError, tell_client

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_INITIAL = re.compile(rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH = re.compile(r"(?P<scheme>\w+)[ ]+(?P<token>[-_.+~/a-zA-Z0-9]+=*)", re.ASCII)
_CONFIRMATION = b"\x01"


class BearerToken(NamedTuple):
    """An accepted token: its subject, and its end in milliseconds since the epoch."""

    subject: str
    expires_at_ms: int


class TokenError(Exception):
    """A token is not accepted; ``status`` and ``scope`` go to the client (RFC 7628), the text to the log."""

    def __init__(self, reason: str, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


TokenCheck = Callable[[str], BearerToken]
"""Checks a token; raises TokenError."""


class OAuthBearerServer:
    """One authentication by OAUTHBEARER."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._refusal: tuple[str, str] | None = None
        self.scope: LoginScope = ANY_LOGIN
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """See ServerMechanism.evaluate. Extensions are accepted and ignored, as by Kafka's own validators."""
        if self._refusal is not None:
            reason, answer = self._refusal
            if token == _CONFIRMATION:
                raise SaslError(reason, answer)
        self._refusal = None
        authorization_id, bearer = _parse_initial(token.decode("utf-8", "replace"))
        try:
            accepted = self._check(bearer)
        except TokenError as problem:
            answer = _describe_refusal(problem)
            self._refusal = (f"the bearer token is not accepted: {problem}", answer)
            return answer.encode()
        if authorization_id and authorization_id != accepted.subject:
            raise tell_client(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is different from"
                f" the token's principal name ({accepted.subject})"
            )
        self.principal = Principal(USER_TYPE, self.scope.find_subject(accepted.subject))
        self.expires_at_ms = accepted.expires_at_ms
        return b""


def _parse_initial(text: str) -> tuple[str, str]:
    """Return the authorization id and the token; raises SaslError."""
    match = _INITIAL.fullmatch(text)
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
    if "auth" not in pairs:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    auth = _AUTH.fullmatch(pairs["auth"])
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if auth["scheme"].lower() != "bearer":
        raise SaslError("Invalid scheme in OAUTHBEARER client first message")
    return match["authzid"] or "", auth["token"]


def _describe_refusal(problem: TokenError) -> str:
    scope = "" if problem.scope is None else f', "scope":{json.dumps(problem.scope)}'
    return f'{{"status":"{problem.status}"{scope}}}'
