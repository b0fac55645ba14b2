"""The requests to one broker for one purpose, over one connection after the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.backoff import Backoff
from kafkacompat.client.errors import (
    ConnectionLostError,
    RequestNotSentError,
    RequestTimedOutError,
    UnsupportedRequestError,
)
from kafkacompat.client.login import BrokerLogin
from kafkacompat.client.protocol import BrokerProtocol
from kafkacompat.security.scram import draw_nonce
from kafkacompat.wire.client_connection import ClientConnection, NoCommonVersionError

if TYPE_CHECKING:
    from random import Random

    from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
    from kafkacompat.network import Network
    from kafkacompat.timers import Clock, DelayedCall
    from kafkacompat.wire.schema import Request

_CONNECT_FAILURES = {
    error.ConnectionRefusedError: "nothing listens there",
    error.TCPTimedOutError: "there is no reply",
    error.TimeoutError: "there is no reply",
    error.DNSLookupError: "the host name cannot be resolved",
}


class _Exchange:
    """A request whose response is expected until a deadline; the first outcome counts."""

    def __init__(self, request: Request, result: Deferred[Any], timeout_s: float, deadline: DelayedCall) -> None:
        self.request = request
        self.timeout_s = timeout_s
        self.has_expired = False
        self._result: Deferred[Any] | None = result
        self._deadline = deadline

    @property
    def name(self) -> str:
        return type(self.request).__name__

    def end(self, outcome: Any) -> None:
        """Pass on the response, or an exception."""
        result = self.give_up()
        if result is not None and isinstance(outcome, Exception):
            result.errback(outcome)
        elif result is not None:
            result.callback(outcome)

    def give_up(self) -> Deferred[Any] | None:
        """Expect no outcome any more; return the Deferred that waits for one."""
        result, self._result = self._result, None
        if self._deadline.active():
            self._deadline.cancel()
        return result


class Channel:
    """Sends requests in order over one connection, which it makes when there are requests and none is there.

    A failed attempt to connect fails the requests that wait for it; the next attempt waits for the back-off. A request that is
    not answered in time closes the connection, as the peer may be gone without a trace.
    """

    def __init__(
        self,
        address: BrokerAddress,
        settings: ConnectionSettings,
        network: Network,
        clock: Clock,
        rng: Random,
    ) -> None:
        self.address = address
        self._peer = (
            str(address) if settings.listener_name is None else f"{address} (listener {settings.listener_name})"
        )
        self._settings = settings
        self._network = network
        self._clock = clock
        self._rng = rng
        self._backoff = Backoff(settings.reconnect_backoff_s, settings.max_reconnect_backoff_s, rng)
        self._connect_at = clock.seconds()
        self._unsent: dict[_Exchange, None] = {}
        self._protocol: BrokerProtocol | None = None
        self._attempt: Deferred[None] | None = None
        self._was_ready = False
        self._setup_deadline: DelayedCall | None = None
        self._reconnection: DelayedCall | None = None

    def request(self, request: Request, timeout_s: float) -> Deferred[Any]:
        """Send a request; see `BrokerConnections.request`."""
        result: Deferred[Any] = Deferred(lambda _: self._cancel(exchange))
        deadline = self._clock.callLater(timeout_s, lambda: self._expire(exchange))
        exchange = _Exchange(request, result, timeout_s, deadline)
        self._unsent[exchange] = None
        self._advance()
        return result

    def close(self, reason: str) -> None:
        """Close the connection; all requests fail with *reason*. The channel must not be used any more."""
        if self._reconnection is not None:
            self._reconnection.cancel()
            self._reconnection = None
        unsent, self._unsent = self._unsent, {}
        if self._protocol is not None:
            self._protocol.close(reason)
        self._fail_unsent(unsent, reason)

    # Requests

    def _advance(self) -> None:
        """Send the waiting requests, or take care that there will be a connection for them."""
        if self._protocol is None:
            self._connect_in_time()
        elif self._protocol.is_ready:
            self._send_all()

    def _send_all(self) -> None:
        while self._unsent and self._protocol is not None and self._protocol.is_ready:
            exchange = next(iter(self._unsent))
            del self._unsent[exchange]
            try:
                response = self._protocol.send(exchange.request)
            except NoCommonVersionError as problem:
                exchange.end(UnsupportedRequestError(f"{exchange.name} was not sent to {self._peer}: {problem}"))
            except Exception as problem:
                exchange.end(problem)
            else:
                response.addCallbacks(exchange.end, self._fail_sent, errbackArgs=(exchange,))

    def _fail_sent(self, failure: Failure, exchange: _Exchange) -> None:
        text = f"{exchange.name} has no response from {self._peer}"
        if exchange.has_expired:
            exchange.end(RequestTimedOutError(f"{text} within {exchange.timeout_s:g} s"))
        else:
            exchange.end(ConnectionLostError(f"{text}: {failure.value}"))

    def _fail_unsent(self, unsent: dict[_Exchange, None], reason: str) -> None:
        for exchange in unsent:
            exchange.end(RequestNotSentError(f"{exchange.name} was not sent to {self._peer}: {reason}"))

    def _expire(self, exchange: _Exchange) -> None:
        if exchange in self._unsent:
            del self._unsent[exchange]
            self._fail_unsent({exchange: None}, f"there was no connection within {exchange.timeout_s:g} s")
        elif self._protocol is not None:
            exchange.has_expired = True
            self._protocol.close(f"the broker has not answered {exchange.name} within {exchange.timeout_s:g} s")

    def _cancel(self, exchange: _Exchange) -> None:
        self._unsent.pop(exchange, None)
        exchange.give_up()

    # The connection

    def _connect_in_time(self) -> None:
        if self._reconnection is None:
            wait_s = self._connect_at - self._clock.seconds()
            if wait_s > 0:
                self._reconnection = self._clock.callLater(wait_s, self._reconnect)
            else:
                self._connect()

    def _reconnect(self) -> None:
        self._reconnection = None
        if self._unsent:
            self._connect()

    def _connect(self) -> None:
        settings = self._settings
        requests = ClientConnection(settings.client_id, settings.cap)
        login = None if settings.login is None else BrokerLogin(settings.login, partial(draw_nonce, self._rng))
        protocol = BrokerProtocol(
            self._clock, requests, settings.max_frame_bytes, self._begin_sending, self._end, login
        )
        self._protocol = protocol
        self._was_ready = False
        self._setup_deadline = self._clock.callLater(
            settings.setup_timeout_s,
            lambda: protocol.close(f"the connection was not ready within {settings.setup_timeout_s:g} s"),
        )
        attempt = self._network.connect(self.address.host, self.address.port, protocol, settings.setup_timeout_s)
        attempt.addErrback(lambda failure: protocol.close(f"cannot connect: {_explain_failure(failure)}"))
        # Cancelling an attempt that has ended does nothing.
        self._attempt = attempt

    def _begin_sending(self) -> None:
        self._was_ready = True
        self._cancel_setup()
        self._backoff.reset()
        self._send_all()

    def _end(self, reason: str) -> None:
        """Continue after the connection has ended, or after the attempt to make one."""
        self._protocol = None
        self._cancel_setup()
        self._connect_at = self._clock.seconds() + self._backoff.next_s()
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.cancel()
        if self._was_ready:
            # A request that could not be written has ended the connection before the next ones were sent.
            if self._unsent:
                self._advance()
        else:
            unsent, self._unsent = self._unsent, {}
            self._fail_unsent(unsent, reason)

    def _cancel_setup(self) -> None:
        if self._setup_deadline is not None and self._setup_deadline.active():
            self._setup_deadline.cancel()
        self._setup_deadline = None


def _explain_failure(failure: Failure) -> str:
    """Say in words why an attempt to connect failed."""
    for kind, words in _CONNECT_FAILURES.items():
        if failure.check(kind):
            return words
    return str(failure.value).rstrip(".")
