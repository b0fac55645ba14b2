"""The client's side of SASL, by which brokers authenticate themselves to each other."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from kafkacompat.security.sasl.mechanism import PLAIN, SaslError
from kafkacompat.security.scram import MIN_ITERATIONS, SCRAM_MECHANISMS

_SERVER_FIRST = re.compile(
    r"(?:m=[^,]+,)?r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?"
)
_SERVER_FINAL = re.compile(r"v=(?P<signature>[A-Za-z0-9+/=]+)(?:,.*)?")
_GS2_HEADER = "n,,"
MAX_REQUESTED_ITERATIONS = 100_000
"""More would hold up the broker for longer than 50 ms."""


class ClientMechanism(Protocol):
    """One authentication by one mechanism, on the side of the client."""

    def begin(self) -> bytes:
        """Return the first message."""

    def evaluate(self, challenge: bytes) -> bytes | None:
        """Return the next message, None when the exchange is complete; raises SaslError."""


class Login(Protocol):
    """The identity of a client, and the mechanism by which the client proves it."""

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""

    def start(self, new_nonce: Callable[[], str]) -> ClientMechanism:
        """Begin an authentication; raises SaslError if that is not possible at present."""


class LoginUnavailableError(Exception):
    """What a login needs cannot be retrieved; the message is a sentence without a secret."""


@dataclass(frozen=True)
class ClientLogin:
    """A name with its password for PLAIN or SCRAM, whose representation shows no password.

    ``by_token`` says that the name is the id of a delegation token, and the password its HMAC.
    """

    mechanism: str
    username: str
    password: str = field(repr=False)
    by_token: bool = False

    def start(self, new_nonce: Callable[[], str]) -> ClientMechanism:
        """See Login.start."""
        return PlainClient(self) if self.mechanism == PLAIN else ScramClient(self, new_nonce())

    def begin(self) -> Deferred[None]:
        """Retrieve what the login needs; a password is there."""
        return succeed(None)

    def stop(self) -> None:
        """Retrieve nothing more."""


class PlainClient:
    """One authentication by PLAIN."""

    def __init__(self, login: ClientLogin) -> None:
        self._login = login

    def begin(self) -> bytes:
        """See ClientMechanism.begin."""
        return f"\0{self._login.username}\0{self._login.password}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See ClientMechanism.evaluate."""
        return None


class BearerClient:
    """One authentication by OAUTHBEARER."""

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = extensions
        self._is_refused = False

    def begin(self) -> bytes:
        """See ClientMechanism.begin."""
        pairs = {"auth": f"Bearer {self._token}", **self._extensions}
        return ("n,,\x01" + "".join(f"{name}={value}\x01" for name, value in pairs.items()) + "\x01").encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See ClientMechanism.evaluate: a broker that refuses the token says so once the client has confirmed it."""
        if challenge and self._is_refused:
            raise SaslError("the other broker refuses the bearer token twice, instead of ending the exchange")
        self._is_refused = bool(challenge)
        return b"\x01" if challenge else None


class ScramClient:
    """One authentication by SCRAM; it also checks that the server knows the credential."""

    def __init__(self, login: ClientLogin, nonce: str) -> None:
        self._mechanism = SCRAM_MECHANISMS[login.mechanism]
        self._password = login.password
        self._nonce = nonce
        name = login.username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}" + (",tokenauth=true" if login.by_token else "")
        self._expected: bytes | None = None

    def begin(self) -> bytes:
        """See ClientMechanism.begin."""
        return (_GS2_HEADER + self._bare).encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """See ClientMechanism.evaluate."""
        text = challenge.decode("utf-8", "replace")
        if self._expected is None:
            return self._prove(text)
        match = _SERVER_FINAL.fullmatch(text)
        if match is None or not hmac.compare_digest(_decode(match["signature"]), self._expected):
            raise SaslError("the other broker has not proved that it knows the credential")
        return None

    def _prove(self, text: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(text)
        if match is None:
            raise SaslError("the other broker's first SCRAM message is malformed")
        if not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise SaslError("the other broker's SCRAM nonce does not continue this broker's")
        iterations = int(match["iterations"])
        if not MIN_ITERATIONS <= iterations <= MAX_REQUESTED_ITERATIONS:
            raise SaslError(f"the other broker asks for {iterations} iterations of SCRAM, which is out of bounds")
        digest = self._mechanism.digest
        salted = self._salt_password(_decode(match["salt"]), iterations)
        final = f"c={base64.b64encode(_GS2_HEADER.encode()).decode()},r={match['nonce']}"
        signed = f"{self._bare},{text},{final}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        self._expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _salt_password(self, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self._mechanism.digest, self._password.encode(), salt, iterations)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SaslError("a SCRAM message of the other broker is malformed") from None
