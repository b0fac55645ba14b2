"""Who may use /v1: bearer tokens of a file, and SCRAM users of the cluster by their passwords.

Whether a user may do something is the authorizer's decision, if there is one. A password costs thousands of hashes, which a thread
computes, a few at a time. An address with too many wrong passwords or tokens waits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.metadata.client_entities import ClientConfig, Entity, make_user_entity
from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.security.principals import USER_TYPE, Principal
from kafkacompat.security.scram import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    derive_credential,
)
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.timers import Clock
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.tenancy.registry import Instances

MAX_FAILURES = 5
FAILURE_PERIOD_S = 60.0
"""An address may fail this often in this time."""
MAX_ADDRESSES = 1000
"""Addresses whose failures are counted by themselves; beyond that all others share a count."""
OTHERS = "others"
MAX_WAITING = 8
"""Passwords that wait for the thread; further ones are refused."""
MAX_PASSWORD_BYTES = 1024
MAX_FILE_BYTES = 1 << 20
MIN_TOKEN_LENGTH = 16

_UNKNOWN_USER = derive_credential(ScramMechanism.SHA_256, bytes(16), bytes(32), MIN_ITERATIONS)
"""Stands for the credential of a user that does not exist, so that the time of an answer does not tell."""


class AccessSettings(NamedTuple):
    """The properties kafkacompat.http.token.file and kafkacompat.http.scram.enable."""

    token_file: str | None
    accepts_scram: bool


class HttpLogin(NamedTuple):
    """A user who has logged in; ``proof`` is the digest of the token, or the credential that the password belongs to."""

    principal: Principal
    proof: bytes | ScramCredential


class FailedLogins:
    """Counts the wrong logins of each address in periods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.seconds()
        self._counts: dict[str, int] = {}

    def check(self, host: str) -> None:
        """Raise HttpError 429 for an address that has failed too often."""
        if self._clock.seconds() - self._since >= FAILURE_PERIOD_S:
            self._since = self._clock.seconds()
            self._counts.clear()
        if self._counts.get(self._find_key(host), 0) >= MAX_FAILURES:
            raise HttpError(429, f"too many wrong logins from {host}: wait {FAILURE_PERIOD_S:g} s")

    def note(self, host: str) -> None:
        """Count a wrong login."""
        key = self._find_key(host)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _find_key(self, host: str) -> str:
        return host if host in self._counts or len(self._counts) < MAX_ADDRESSES else OTHERS


class HttpAccess:
    """Authenticates requests. *run* calls a function in a thread. *find_clients* returns the credentials of the cluster's users."""

    def __init__(
        self,
        settings: AccessSettings,
        clock: Clock,
        run: Callable[..., Deferred[Any]],
        find_clients: Callable[[], Mapping[Entity, ClientConfig]],
        instances: Instances,
    ) -> None:
        self._settings = settings
        self._run = run
        self._find_clients = find_clients
        self._instances = instances
        self._failures = FailedLogins(clock)
        self._waiting = 0

    async def authenticate(self, authorization: bytes | None, host: str) -> Principal:
        """Return the user of a request with this Authorization header; raises HttpError 401, 429 and 503.

        The users of instances administer nothing here.
        """
        if authorization is None:
            raise HttpError(401, "log in by a bearer token, or by the name and password of a SCRAM user")
        login = await self._admit(lambda: self._find_operator(authorization), host)
        return login.principal

    async def log_in(self, name: str, secret: str, host: str) -> HttpLogin:
        """Return the login of a user by name and password, or without a name by a token; raises HttpError 401, 429 and 503.

        The users of instances log in by their physical names.
        """
        return await self._admit(lambda: self._find_login(name, secret), host)

    async def is_valid(self, login: HttpLogin) -> bool:
        """Return whether the token or the password of a login is still the user's; raises HttpError 503."""
        name, proof = login.principal.name, login.proof
        if isinstance(proof, ScramCredential):
            return proof in self._find_credentials(name).values()
        file = self._settings.token_file
        return file is not None and await self._run(find_token_owner, file, proof) == name

    async def _admit(self, find: Callable[[], Awaitable[HttpLogin | None]], host: str) -> HttpLogin:
        self._failures.check(host)
        if self._waiting >= MAX_WAITING:
            raise HttpError(503, "too many logins at the same time: try again")
        self._waiting += 1
        try:
            login = await find()
        finally:
            self._waiting -= 1
        if login is None:
            self._failures.note(host)
            raise HttpError(401, "the token, or the name and password, is wrong")
        return login

    async def _find_operator(self, authorization: bytes) -> HttpLogin | None:
        scheme, _, secret = authorization.partition(b" ")
        login = None
        if scheme.lower() == b"bearer":
            login = await self._check_token(secret.strip())
        elif scheme.lower() == b"basic" and (user := decode_basic(secret.strip())) is not None:
            login = await self._check_password(*user)
        return None if login is None or self._is_of_instance(login.principal.name) else login

    async def _find_login(self, name: str, secret: str) -> HttpLogin | None:
        return await (self._check_password(name, secret) if name else self._check_token(secret.encode()))

    def _is_of_instance(self, name: str) -> bool:
        return self._instances.find_owner(entities.USER, name) is not None

    def _find_credentials(self, name: str) -> Mapping[ScramMechanism, ScramCredential]:
        return self._find_clients().get(make_user_entity(name), ClientConfig()).credentials

    async def _check_token(self, token: bytes) -> HttpLogin | None:
        if self._settings.token_file is None:
            return None
        digest = hashlib.sha256(token).digest()
        name = await self._run(find_token_owner, self._settings.token_file, digest)
        return None if name is None else HttpLogin(Principal(USER_TYPE, name), digest)

    async def _check_password(self, name: str, password: str) -> HttpLogin | None:
        if not self._settings.accepts_scram or len(password.encode(errors="replace")) > MAX_PASSWORD_BYTES:
            return None
        unknown = (ScramMechanism.SHA_256, _UNKNOWN_USER)
        mechanism, credential = next(iter(self._find_credentials(name).items()), unknown)
        is_right = await self._run(is_password, mechanism, credential, password)
        return (
            HttpLogin(Principal(USER_TYPE, name), credential) if is_right and credential is not _UNKNOWN_USER else None
        )


def decode_basic(secret: bytes) -> tuple[str, str] | None:
    """Return the name and the password of the scheme Basic; None if they are not valid."""
    try:
        name, colon, password = base64.b64decode(secret, validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name, password) if colon else None


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    """Return whether a credential was derived from a password; takes milliseconds. [disk]"""
    salted = hashlib.pbkdf2_hmac(
        mechanism.digest, password.encode(errors="replace"), credential.salt, credential.iterations
    )
    derived = derive_credential(mechanism, credential.salt, salted, credential.iterations)
    return hmac.compare_digest(derived.stored_key, credential.stored_key)


def find_token_owner(path: str, wanted: bytes) -> str | None:
    """Return the name beside a token in a file of lines NAME:TOKEN, by its SHA-256; None for a wrong token. [disk]

    Raises HttpError 503 if the file cannot be used.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as problem:
        raise HttpError(503, f"kafkacompat.http.token.file cannot be read: {describe_error(problem)}") from None
    if len(content) > MAX_FILE_BYTES:
        raise HttpError(503, f"kafkacompat.http.token.file has more than {MAX_FILE_BYTES} bytes")
    owner = None
    for line in content.splitlines():
        name, colon, known = line.strip().partition(b":")
        if not colon or name.startswith(b"#") or len(known) < MIN_TOKEN_LENGTH:
            continue
        # All lines are compared, so that the time does not tell which one is right.
        if hmac.compare_digest(hashlib.sha256(known).digest(), wanted):
            owner = name.decode(errors="replace")
    return owner
