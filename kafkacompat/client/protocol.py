"""One connection to another broker: a Twisted protocol over the sans-IO `ClientConnection`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafkacompat.client.errors import ConnectionLostError
from kafkacompat.client.login import BrokerLogin, LoginError
from kafkacompat.timers import make_steps
from kafkacompat.wire.client_connection import ClientConnection, IncomingResponse, NoCommonVersionError, ResponseError
from kafkacompat.wire.frames import FrameError, FrameReader
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from kafkacompat.network import Transport
    from kafkacompat.timers import Clock, DelayedCall

CLOSED_BY_PEER = "the broker closed the connection"


class BrokerProtocol(Protocol):
    """Sends requests and fires a Deferred for each response.

    ``on_ready()`` is called once the versions of the broker are known and this broker has authenticated itself by *login*, and
    again when it has renewed its session: no other request is sent meanwhile. ``on_end(reason)`` is called once when the
    connection is of no use any more, before the unanswered requests fail. While a large response is read in several turns, no
    more bytes are received.
    """

    transport: Transport  # type: ignore[assignment]

    def __init__(
        self,
        clock: Clock,
        requests: ClientConnection,
        max_frame_bytes: int,
        on_ready: Callable[[], None],
        on_end: Callable[[str], None],
        login: BrokerLogin | None = None,
    ) -> None:
        self._clock = clock
        self._requests = requests
        self._frames = FrameReader(max_frame_bytes)
        self._on_ready = on_ready
        self._on_end = on_end
        self._waiting: deque[memoryview] = deque()
        self._unanswered: dict[int, Deferred[Response]] = {}
        self._is_reading = False
        self._has_ended = False
        self._login = login
        self._is_logged_in = login is None
        self._renewal: DelayedCall | None = None

    @property
    def is_ready(self) -> bool:
        """Whether requests may be sent."""
        return self._requests.is_negotiated and self._is_logged_in and not self._has_ended

    def send(self, request: Request) -> Deferred[Response]:
        """Send a request; the Deferred fires with the response, or fails with ConnectionLostError.

        Raises NoCommonVersionError, or what the encoder raises for a request with wrong values; nothing was sent then.
        """
        outgoing = self._requests.send(request)
        response = self._unanswered[outgoing.correlation_id] = Deferred()
        try:
            writing = outgoing.writing and make_steps(self._clock, outgoing.writing)
        except Exception as problem:
            self._give_up(problem)
            return response
        if writing:
            writing.addCallbacks(self._send_written, lambda failure: self._give_up(failure.value))
        else:
            self._send_written()
        return response

    def close(self, reason: str) -> None:
        """Close at once; every unanswered request fails with *reason*."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._renewal is not None and self._renewal.active():
            self._renewal.cancel()
        if self.transport is not None:
            self.transport.abortConnection()
        self._waiting.clear()
        unanswered, self._unanswered = self._unanswered, {}
        self._on_end(reason)
        for response in unanswered.values():
            response.errback(ConnectionLostError(reason))

    # What Twisted calls

    def connectionMade(self) -> None:
        """Twisted: the broker has accepted the connection."""
        if self._has_ended:
            self.transport.abortConnection()
        else:
            self._send_written()

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes have arrived."""
        if self._has_ended:
            return
        try:
            self._waiting.extend(self._frames.feed(data))
        except FrameError as problem:
            self.close(str(problem))
            return
        self._read_waiting()

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        """Twisted: the connection is closed."""
        # A transport over TLS says why it has failed.
        self.close(str(reason.value) if reason.check(ConnectError) else CLOSED_BY_PEER)

    # The way of a response

    def _read_waiting(self) -> None:
        while self._waiting and not self._is_reading:
            try:
                self._receive(self._waiting.popleft())
            except ResponseError as problem:
                self._give_up(problem)

    def _receive(self, frame: memoryview) -> None:
        incoming = self._requests.receive(frame)
        if incoming is None:
            self._continue_negotiation()
            return
        reading = incoming.reading and make_steps(self._clock, incoming.reading)
        if reading:
            self._set_reading(True)
            reading.addCallback(self._read_on, incoming)
            reading.addErrback(lambda failure: self._give_up(failure.value))
        else:
            self._answer(incoming)

    def _continue_negotiation(self) -> None:
        if not self._requests.is_negotiated:
            self._send_written()
        elif self._login is not None:
            self._log_in(self._login)
        else:
            self._on_ready()

    # Authentication

    def _log_in(self, login: BrokerLogin) -> None:
        self._is_logged_in = False
        self._send_login(login.begin(), login)

    def _send_login(self, request: Request, login: BrokerLogin) -> None:
        try:
            sending = self.send(request)
        except NoCommonVersionError as problem:
            self.close(str(problem))
            return
        sending.addCallback(self._continue_login, login)
        # The connection has ended, and with it its other requests.
        sending.addErrback(lambda _: None)

    def _continue_login(self, response: Response, login: BrokerLogin) -> None:
        if self._has_ended:
            return
        try:
            request = login.receive(response)
        except LoginError as problem:
            self.close(str(problem))
            return
        if request is not None:
            self._send_login(request, login)
            return
        self._is_logged_in = True
        if login.renewed_after_s is not None:
            self._renewal = self._clock.callLater(login.renewed_after_s, self._log_in, login)
        self._on_ready()

    def _read_on(self, _: None, incoming: IncomingResponse) -> None:
        """Continue after a large response was read in several turns."""
        if not self._has_ended:
            self._set_reading(False)
            self._answer(incoming)
            self._read_waiting()

    def _set_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        if is_reading:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def _answer(self, incoming: IncomingResponse) -> None:
        response: Deferred[Any] = self._unanswered.pop(incoming.request.correlation_id)
        response.callback(incoming.body)

    def _send_written(self, _: object = None) -> None:
        if not self._has_ended:
            parts = self._requests.take_parts()
            if parts:
                self.transport.send_parts(parts)

    def _give_up(self, problem: BaseException | None) -> None:
        self.close(str(problem) if isinstance(problem, ResponseError) else f"a message cannot be coded: {problem!r}")
