"""What a connection of a listener with SASL lets through: its authentication first, then requests until the session ends."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafkacompat.metrics.connections import ListenerTraffic
from kafkacompat.metrics.places import OTHER
from kafkacompat.security.principals import Principal
from kafkacompat.security.sasl.exchange import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    AuthenticationFailedError,
    SaslExchange,
    SessionEndedError,
    Stage,
    UnexpectedRequestError,
)
from kafkacompat.security.sasl.mechanism import LoginScope
from kafkacompat.timers import Clock, DelayedCall
from kafkacompat.wire.connection import IncomingRequest, RequestError
from kafkacompat.wire.schema import Response

AUTHENTICATION_TIMEOUT_S = 30.0
"""Time in which a client has to authenticate itself."""

_API_KEY = struct.Struct(">h")


class SaslGate:
    """The authentication of one connection.

    ``failure`` is the error of a failed authentication, which is answered after ``failure_delay_s``.
    """

    failure = AuthenticationFailedError

    def __init__(self, exchange: SaslExchange, max_receive_bytes: int, failure_delay_s: float) -> None:
        self.max_receive_bytes = max_receive_bytes
        self.failure_delay_s = failure_delay_s
        self._exchange = exchange
        self._deadline: DelayedCall | None = None
        self._traffic: ListenerTraffic

    def set_scope(self, scope: LoginScope) -> None:
        """Let only the users of a scope log in from now on."""
        self._exchange.scope = scope

    @property
    def takes_bare_token(self) -> bool:
        """Whether the next frame is a message of the mechanism, without a request header."""
        return self._exchange.takes_bare_token

    @property
    def principal(self) -> Principal | None:
        """The user, once requests may come."""
        return self._exchange.principal if self._exchange.stage is Stage.REQUESTS else None

    @property
    def session_is_limited(self) -> bool:
        """Whether the client has to authenticate again."""
        return self._exchange.session_is_limited

    def admits(self, frame: memoryview) -> bool:
        """Return whether a frame belongs to the authentication; raises RequestError for one that must not come now.

        The frame is not parsed for that, so that no client without a user reaches the more complex requests.
        """
        if self._exchange.takes_bare_token:
            return True
        if len(frame) < _API_KEY.size:
            raise RequestError(f"a request of {len(frame)} bytes has no whole header")
        try:
            return self._exchange.admits(_API_KEY.unpack_from(frame)[0])
        except SessionEndedError as problem:
            self._traffic.expired += 1
            raise RequestError(str(problem)) from None
        except UnexpectedRequestError as problem:
            self._note_outcome(succeeded=False, repeated=self._exchange.is_repeated)
            raise RequestError(str(problem)) from None

    @contextmanager
    def _note_outcomes(self) -> Iterator[None]:
        """Count the outcome of the authentication if a message ends it; turn UnexpectedRequestError into RequestError."""
        repeated = self._exchange.is_repeated
        try:
            yield
        except AuthenticationFailedError:
            self._note_outcome(succeeded=False, repeated=repeated)
            raise
        except UnexpectedRequestError as problem:
            self._note_outcome(succeeded=False, repeated=repeated)
            raise RequestError(str(problem)) from None
        if self.principal is not None:
            self._note_outcome(succeeded=True, repeated=repeated)

    def _note_outcome(self, *, succeeded: bool, repeated: bool) -> None:
        mechanism = self._exchange.mechanism_name or OTHER
        self._traffic.note_authentication(mechanism, succeeded=succeeded, repeated=repeated)

    def answer(self, incoming: IncomingRequest, answer_versions: Callable[[IncomingRequest], Any]) -> Response:
        """Return the response to a request of the authentication; raises AuthenticationFailedError and RequestError."""
        # Even the largest message is short enough for one turn.
        for _ in incoming.reading or ():
            pass
        body: Any = incoming.body
        with self._note_outcomes():
            if incoming.api_key == SASL_HANDSHAKE:
                return self._exchange.choose_mechanism(body, incoming.api_version)
            if incoming.api_key == SASL_AUTHENTICATE:
                return self._exchange.authenticate(body)
        versions: Response | None = answer_versions(incoming)
        if versions is None:
            raise RequestError("this listener does not answer ApiVersions, as the release that it behaves like")
        self._exchange.note_versions(versions.error_code)  # type: ignore[attr-defined]
        return versions

    def answer_bare(self, frame: memoryview) -> bytes:
        """Return the answer to a message of the mechanism; raises AuthenticationFailedError and RequestError."""
        with self._note_outcomes():
            return self._exchange.authenticate_bare(bytes(frame))

    def start(self, clock: Clock, traffic: ListenerTraffic, delay_ms: int, on_timeout: Callable[[str], None]) -> None:
        """Count outcomes in *traffic*, and call *on_timeout* with a reason unless the client authenticates itself in time.

        The time begins after *delay_ms*, in which nothing is read from the client.
        """
        self._traffic = traffic
        reason = f"it has not authenticated itself within {AUTHENTICATION_TIMEOUT_S:g} s"
        self._deadline = clock.callLater(AUTHENTICATION_TIMEOUT_S + delay_ms / 1000, on_timeout, reason)

    def stop_clock(self) -> None:
        """Let the deadline pass."""
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None
