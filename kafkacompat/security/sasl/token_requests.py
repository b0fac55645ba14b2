"""Bearer tokens of a client, without a network: the request to an identity provider, its answer, and unsecured tokens.

A token is requested by the client credentials grant (RFC 6749, section 4.4) and read as Kafka's client reads it: its signature is
left to the broker that receives it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

from kafkacompat.security.sasl.client import LoginUnavailableError
from kafkacompat.security.sasl.oauthbearer import TokenError
from kafkacompat.security.sasl.unsecured_tokens import decode_json_part, is_number
from kafkacompat.security.tls.settings import StoreSettings
from kafkacompat.storage.files.os_errors import describe_error

MAX_TOKEN_BYTES = 256 * 1024
"""The most bytes of a provider's answer, and of a file with a token."""
_SUCCESS = (200, 201)
_FINAL_STATUSES = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 413, 414, 415, 501, 505})
"""The statuses that no further attempt changes, as Kafka lists them."""
_MOST_SHOWN = 200
_TOKEN = re.compile(r"[\w=-]+\.(?P<claims>[\w=-]+)\.[\w=-]*", re.ASCII)
"""A JWT in its compact form (RFC 7515, section 7.1); an unsecured one has no signature."""


class TokenRequestError(LoginUnavailableError):
    """There is no token. ``is_final``: another attempt would fail, too."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class ClientToken(NamedTuple):
    """A token with its claims; times in milliseconds since the epoch."""

    text: str
    subject: str
    issued_at_ms: int | None
    expires_at_ms: int

    def __repr__(self) -> str:
        return f"ClientToken(subject={self.subject!r}, expires_at_ms={self.expires_at_ms}, the rest is secret)"


@dataclass(frozen=True)
class TokenEndpoint:
    """Where an identity provider issues tokens, and for which client id.

    ``trust_store`` is None for the authorities of the system. ``encodes_credentials`` encodes both parts of the Authorization header
    as in a URL (KIP-1025).
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    trust_store: StoreSettings | None = None
    encodes_credentials: bool = False

    def build_headers(self) -> dict[str, str]:
        """Return the headers of a request."""
        encode = quote_plus if self.encodes_credentials else str
        credentials = f"{encode(self.client_id)}:{encode(self.client_secret)}"
        return {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def build_body(self) -> bytes:
        """Return the body of a request."""
        fields = {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        return urlencode(fields).encode()

    def read_answer(self, status: int, body: bytes) -> str:
        """Return the token of an answer; raises TokenRequestError."""
        if status not in _SUCCESS:
            reason = f"{self.url} answers with the status {status}{self._describe_error(body)}"
            raise TokenRequestError(reason, is_final=status in _FINAL_STATUSES)
        token = _parse_object(body).get("access_token")
        if not isinstance(token, str) or not token.strip():
            raise TokenRequestError(f"the answer of {self.url} has no access_token", is_final=True)
        return token.strip()

    def _describe_error(self, body: bytes) -> str:
        """Return the provider's own words (RFC 6749, section 5.2), which a provider could fill with the secret."""
        fields = _parse_object(body)
        words = (str(fields[name]) for name in ("error", "error_description") if fields.get(name))
        text = ": ".join(words).replace(self.client_secret, "(secret)")
        return f" ({text[:_MOST_SHOWN]!r})" if text else ""


class TokenFile(NamedTuple):
    """A file that holds a token, which another program renews."""

    path: str


class UnsecuredClaims(NamedTuple):
    """What unsecured tokens claim, besides the times of their issue and expiry."""

    claims: Mapping[str, Any]
    lifetime_s: int = 3600

    def build_token(self, now_ms: int) -> str:
        """Return a token that is valid from now on."""
        times = {"exp": now_ms / 1000 + self.lifetime_s, "iat": now_ms / 1000}
        return f"{_encode_part({'alg': 'none'})}.{_encode_part({**times, **self.claims})}."


def parse_client_token(text: str, subject_claim: str) -> ClientToken:
    """Read the claims of a token; raises TokenRequestError. The text of a token never shows in a message."""
    match = _TOKEN.fullmatch(text.strip())
    if match is None:
        raise TokenRequestError("the token is not three parts of Base64, separated by dots", is_final=True)
    try:
        claims = decode_json_part(match["claims"])
    except TokenError:
        raise TokenRequestError("the claims of the token are not JSON in Base64", is_final=True) from None
    subject, issued, expiry = claims.get(subject_claim), claims.get("iat"), claims.get("exp")
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRequestError(f"the token has no text as the claim {subject_claim}", is_final=True)
    if not is_number(expiry) or expiry < 0:
        raise TokenRequestError("the token has no time as the claim exp", is_final=True)
    if issued is not None and (not is_number(issued) or issued < 0):
        raise TokenRequestError("the claim iat of the token is no time", is_final=True)
    issued_at_ms = None if issued is None else round(issued * 1000)
    return ClientToken(text.strip(), subject.strip(), issued_at_ms, round(expiry * 1000))


def read_own_token(origin: TokenFile | UnsecuredClaims, now_ms: int) -> str:
    """Return a token that needs no identity provider; raises TokenRequestError."""
    return _read_file(origin.path) if isinstance(origin, TokenFile) else origin.build_token(now_ms)


def _read_file(path: str) -> str:
    """Return the text of a file with a token; raises TokenRequestError."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as problem:
        problem.filename = None
        raise TokenRequestError(f"{path} cannot be read: {describe_error(problem)}") from None
    if len(data) > MAX_TOKEN_BYTES or not data.isascii():
        raise TokenRequestError(f"{path} holds no token")
    return data.decode().strip()


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _encode_part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
