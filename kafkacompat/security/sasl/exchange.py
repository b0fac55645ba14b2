"""The authentication of one connection on the side of the broker: which request may come when, and what it leads to.

The rules are those of Kafka's SaslServerAuthenticator, and of re-authentication (KIP-368):

* before authentication a client may send ApiVersions, then SaslHandshake, then the mechanism's messages, and nothing else;
* SaslHandshake 0 lets the messages follow as bare frames, SaslHandshake 1 in SaslAuthenticate (KIP-152);
* ApiVersions may be repeated only as long as its answer is an error;
* a session whose time is limited must authenticate again, with the same mechanism and for the same user, at most once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.mechanism import ANY_LOGIN, LoginScope, SaslError, ServerMechanism
from kafkacompat.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkacompat.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.java_hash import java_string_hash
from kafkacompat.wire.schema import Response

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
MAX_REQUESTS = 16
"""Requests that a connection may send before it is authenticated; the longest exchange needs five."""
MIN_REAUTHENTICATION_MS = 1000


class Stage(Enum):
    """What a connection may send next."""

    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    TOKEN = auto()
    OTHER_MECHANISM = auto()
    """A re-authentication by another mechanism fails at its next request, as in Kafka."""
    REQUESTS = auto()
    """Ordinary requests: the client is authenticated."""
    FAILED = auto()


class UnexpectedRequestError(Exception):
    """A request may not come at this point: the connection is closed."""


class SessionEndedError(UnexpectedRequestError):
    """A request comes after the end of the session, and the client has not authenticated itself again."""


class AuthenticationFailedError(Exception):
    """The authentication has failed; the text is for the log. ``response`` goes to the client, later, before the end."""

    def __init__(self, reason: str, response: Response | None) -> None:
        super().__init__(reason)
        self.response = response

    @property
    def code(self) -> ErrorCode:
        """Kafka's name of the failure; a client without a request header receives none."""
        code = 0 if self.response is None else self.response.error_code  # type: ignore[attr-defined]
        return ErrorCode(code or ErrorCode.SASL_AUTHENTICATION_FAILED)


@dataclass(frozen=True)
class Offer:
    """The mechanisms of a listener: how each begins, and how long its sessions last in ms (0 or less: without limit)."""

    mechanisms: Mapping[str, Callable[[], ServerMechanism]]
    max_session_ms: Mapping[str, int]

    @cached_property
    def names(self) -> list[str]:
        """The names in the order in which Kafka lists them: that of a Java HashSet with 16 buckets."""
        return sorted(self.mechanisms, key=_find_bucket)


def _find_bucket(name: str) -> int:
    value = java_string_hash(name) & 0xFFFFFFFF
    return (value ^ value >> 16) & 15


class SaslExchange:
    """The authentication of one connection.

    ``principal`` is the user once ``stage`` is REQUESTS, ``takes_bare_token`` is set while the next frame has no request header.
    ``mechanism_name`` is empty before one was chosen. ``scope`` says which users may log in.
    ``steady_ms`` measures durations, ``now_ms`` is the time of day.
    """

    def __init__(self, offer: Offer, steady_ms: Callable[[], int], now_ms: Callable[[], int]) -> None:
        self._offer = offer
        self._steady_ms = steady_ms
        self._now_ms = now_ms
        self.stage = Stage.VERSIONS_OR_HANDSHAKE
        self.takes_bare_token = False
        self.principal: Principal | None = None
        self.scope: LoginScope = ANY_LOGIN
        self._mechanism: ServerMechanism | None = None
        self.mechanism_name = ""
        self._requests = 0
        self._ends_at_ms: int | None = None
        self._reauthenticated_at_ms: int | None = None

    @property
    def session_is_limited(self) -> bool:
        """Whether the client has to authenticate again."""
        return self._ends_at_ms is not None

    @property
    def is_repeated(self) -> bool:
        """Whether an authentication now would be a repeated one."""
        return self.principal is not None

    # Before a request is parsed

    def admits(self, api_key: int) -> bool:
        """Return whether a request belongs to the authentication; False for an ordinary request of an authenticated client.

        Raises UnexpectedRequestError for one that must not come now, also when the session has ended.
        """
        if self.stage is Stage.REQUESTS:
            return self._admits_in_session(api_key)
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            raise UnexpectedRequestError(f"it sends more than {MAX_REQUESTS} requests without authenticating itself")
        if api_key not in _EXPECTED[self.stage]:
            expected = " or ".join(_NAMES[key] for key in _EXPECTED[self.stage]) or "nothing"
            raise UnexpectedRequestError(f"it sends API key {api_key} where its authentication expects {expected}")
        return True

    def _admits_in_session(self, api_key: int) -> bool:
        if self._ends_at_ms is None:
            return False
        now_ms = self._steady_ms()
        last = self._reauthenticated_at_ms
        if api_key == SASL_HANDSHAKE and (last is None or now_ms - last >= MIN_REAUTHENTICATION_MS):
            self._reauthenticated_at_ms = now_ms
            self._requests = 0
            return True
        if now_ms > self._ends_at_ms:
            raise SessionEndedError("its session has ended, and it has not authenticated itself again")
        return False

    # Requests

    def note_versions(self, error_code: int) -> None:
        """Continue after ApiVersions was answered."""
        if not error_code:
            self.stage = Stage.HANDSHAKE

    def choose_mechanism(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        """Answer SaslHandshake; raises AuthenticationFailedError and UnexpectedRequestError."""
        name, names = request.mechanism, self._offer.names
        start = self._offer.mechanisms.get(name)
        if start is None:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            raise self._fail(
                f"the SASL mechanism {name[:40]!r} is not enabled",
                SaslHandshakeResponse(error_code=code, mechanisms=names),
            )
        if self.is_repeated and version == 0:
            raise UnexpectedRequestError(
                "it authenticates itself again by SaslHandshake 0, which has no re-authentication"
            )
        if self.is_repeated and name != self.mechanism_name:
            self.stage = Stage.OTHER_MECHANISM
        else:
            self.stage = Stage.TOKEN
            self.takes_bare_token = version == 0
            self._mechanism, self.mechanism_name = start(), name
            self._mechanism.scope = self.scope
        return SaslHandshakeResponse(mechanisms=names)

    def authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        """Answer SaslAuthenticate; raises AuthenticationFailedError."""
        if self.stage is Stage.OTHER_MECHANISM:
            raise self._fail(f"it authenticates itself again by another mechanism than {self.mechanism_name}", None)
        try:
            answer = self._evaluate(bytes(request.auth_bytes))
        except SaslError as problem:
            message = self._describe(problem)
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            raise self._fail(str(problem), SaslAuthenticateResponse(error_code=code, error_message=message)) from None
        lifetime_ms = self._complete() if self._mechanism_is_done else 0
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)

    def authenticate_bare(self, token: bytes) -> bytes:
        """Answer a frame that is a mechanism's message; raises AuthenticationFailedError, which has no response."""
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            raise UnexpectedRequestError(f"it sends more than {MAX_REQUESTS} requests without authenticating itself")
        try:
            answer = self._evaluate(token)
        except SaslError as problem:
            raise self._fail(str(problem), None) from None
        if self._mechanism_is_done:
            self._complete()
        return answer

    def _evaluate(self, token: bytes) -> bytes:
        mechanism = self._mechanism
        assert mechanism is not None
        answer = mechanism.evaluate(token)
        before, after = self.principal, mechanism.principal
        if after is not None and not self.scope.owns(after.name):
            raise SaslError(
                "the user may not log in on this connection: it belongs to an instance that is reached otherwise"
            )
        if before is not None and after is not None and before[:2] != after[:2]:
            raise _tell_changed_principal(before, after, self.scope)
        return answer

    @property
    def _mechanism_is_done(self) -> bool:
        return self._mechanism is not None and self._mechanism.principal is not None

    def _complete(self) -> int:
        """Begin the session; return its length in ms, 0 if it has no limit."""
        mechanism = self._mechanism
        assert mechanism is not None
        self.principal, self._mechanism = mechanism.principal, None
        self.stage, self.takes_bare_token = Stage.REQUESTS, False
        limits = [limit] if (limit := self._offer.max_session_ms.get(self.mechanism_name, 0)) > 0 else []
        if mechanism.expires_at_ms is not None:
            limits.append(mechanism.expires_at_ms - self._now_ms())
        if not limits:
            self._ends_at_ms = None
            return 0
        lifetime_ms = max(min(limits), 0)
        self._ends_at_ms = self._steady_ms() + lifetime_ms
        return lifetime_ms

    def _fail(self, reason: str, response: Response | None) -> AuthenticationFailedError:
        self.stage = Stage.FAILED
        self._mechanism = None
        return AuthenticationFailedError(reason, response)

    def _describe(self, problem: SaslError) -> str:
        """Return the text that the client receives."""
        if problem.client_message is not None:
            return problem.client_message
        exchange = "re-authentication" if self.is_repeated else "authentication"
        return f"Authentication failed during {exchange} due to invalid credentials with SASL mechanism {self.mechanism_name}"


def _tell_changed_principal(before: Principal, after: Principal, scope: LoginScope) -> SaslError:
    names = [f"{principal.kind}.{scope.show(principal.name)}" for principal in (before, after)]
    text = f"Cannot change principals during re-authentication from {': '.join(names)}"
    return SaslError(text, text)


_EXPECTED: Mapping[Stage, tuple[int, ...]] = {
    Stage.VERSIONS_OR_HANDSHAKE: (API_VERSIONS, SASL_HANDSHAKE),
    Stage.HANDSHAKE: (SASL_HANDSHAKE,),
    Stage.TOKEN: (SASL_AUTHENTICATE,),
    Stage.OTHER_MECHANISM: (SASL_AUTHENTICATE,),
    Stage.FAILED: (),
}
_NAMES = {API_VERSIONS: "ApiVersions", SASL_HANDSHAKE: "SaslHandshake", SASL_AUTHENTICATE: "SaslAuthenticate"}
