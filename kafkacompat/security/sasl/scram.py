"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): the client proves its password without sending it.

Differences from Kafka, both for safety: an unknown user receives a salt as any other, and fails with its proof, so that neither
the number of messages nor the time says whether a user exists; and the channel binding, which covers the authorization id, is
checked. The client's nonce in its final message is checked (CVE-2024-56128).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kafkacompat.security.principals import USER_TYPE, Principal
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, LoginScope, SaslError, tell_client
from kafkacompat.security.scram import MIN_ITERATIONS, ScramCredential, ScramMechanism

TOKEN_EXTENSION = "tokenauth"
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SALT_BITS = 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class TokenLogin(NamedTuple):
    """A delegation token as SCRAM needs it: its owner, the credential of its HMAC, and its end in ms since the epoch."""

    owner: Principal
    credential: ScramCredential
    expires_at_ms: int


@dataclass(frozen=True)
class ScramStore:
    """Where SCRAM finds credentials.

    ``decoy_key`` is a random secret from which the salts of unknown users are derived. ``new_nonce`` returns printable text of at
    least 128 random bits.
    """

    find_user: Callable[[ScramMechanism, str], ScramCredential | None]
    find_token: Callable[[ScramMechanism, str], TokenLogin | None]
    new_nonce: Callable[[], str]
    decoy_key: bytes

    def make_decoy(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """Return a credential that nobody has: always the same for one name, with a salt like those of Kafka's tools."""
        digest = hmac.digest(self.decoy_key, f"{mechanism}/{user}".encode(), "sha512")
        return ScramCredential(make_salt(digest), digest[:32], digest[32:], MIN_ITERATIONS)


def make_salt(digest: bytes) -> bytes:
    """Return digits of base 36, as Kafka's tools make salts."""
    number = int.from_bytes(digest, "big") >> (len(digest) * 8 - _SALT_BITS)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.encode()


@dataclass
class _Exchange:
    """What the server remembers between the client's two messages."""

    principal: Principal
    credential: ScramCredential
    is_decoy: bool
    nonce: str
    channel: bytes
    signed: str


class ScramServer:
    """One authentication by SCRAM."""

    def __init__(self, mechanism: ScramMechanism, store: ScramStore) -> None:
        self._mechanism = mechanism
        self._store = store
        self._exchange: _Exchange | None = None
        self.scope: LoginScope = ANY_LOGIN
        self.principal: Principal | None = None
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        """See ServerMechanism.evaluate."""
        text = token.decode("utf-8", "replace")
        if self._exchange is None:
            return self._answer_first(text)
        exchange, self._exchange = self._exchange, None
        return self._answer_final(text, exchange)

    def _answer_first(self, text: str) -> bytes:
        match = _CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise SaslError("Invalid SCRAM client first message format")
        name = match["name"].replace("=2C", ",").replace("=3D", "=")
        principal, credential = self._find(name, match["extensions"])
        if match["authzid"] not in (None, name):
            raise tell_client(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        is_decoy = credential is None
        credential = credential or self._store.make_decoy(self._mechanism, name)
        if credential.iterations < MIN_ITERATIONS:
            raise SaslError(f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS}")
        nonce = match["nonce"] + self._store.new_nonce()
        answer = f"r={nonce},s={base64.b64encode(credential.salt).decode()},i={credential.iterations}"
        signed = f"{match['bare']},{answer},"
        self._exchange = _Exchange(principal, credential, is_decoy, nonce, match["gs2"].encode(), signed)
        return answer.encode()

    def _find(self, name: str, extensions: str) -> tuple[Principal, ScramCredential | None]:
        if not _asks_for_token(extensions):
            user = self.scope.find_user(name)
            return Principal(USER_TYPE, user), self._store.find_user(self._mechanism, user)
        login = self._store.find_token(self._mechanism, name)
        if login is None or not self.scope.owns(login.owner.name):
            return Principal(USER_TYPE, name), None
        self.expires_at_ms = login.expires_at_ms
        return login.owner._replace(by_token=True), login.credential

    def _answer_final(self, text: str, exchange: _Exchange) -> bytes:
        match = _CLIENT_FINAL.fullmatch(text)
        if match is None:
            raise SaslError("Invalid SCRAM client final message format")
        if match["nonce"] != exchange.nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        if base64.b64decode(match["channel"]) != exchange.channel:
            raise SaslError("the channel binding of the final client message is not that of the first message")
        signed = (exchange.signed + match["without_proof"]).encode()
        if not self._is_proof(base64.b64decode(match["proof"]), exchange, signed):
            raise SaslError("Invalid client credentials")
        self.principal = exchange.principal
        signature = hmac.digest(exchange.credential.server_key, signed, self._mechanism.digest)
        return b"v=" + base64.b64encode(signature)

    def _is_proof(self, proof: bytes, exchange: _Exchange, signed: bytes) -> bool:
        stored_key, digest = exchange.credential.stored_key, self._mechanism.digest
        signature = hmac.digest(stored_key, signed, digest)
        if len(proof) != len(signature):
            return False
        client_key = (int.from_bytes(proof, "big") ^ int.from_bytes(signature, "big")).to_bytes(len(proof), "big")
        is_same = hmac.compare_digest(hashlib.new(digest, client_key).digest(), stored_key)
        return is_same and not exchange.is_decoy


def _asks_for_token(extensions: str) -> bool:
    """Return whether the extensions say tokenauth=true; unknown ones are ignored, as in Kafka."""
    values = dict(extension.split("=", 1) for extension in extensions.split(",") if extension)
    return values.get(TOKEN_EXTENSION, "").lower() == "true"
