"""The controller's requests to one broker: in order, each repeated until it is answered or the broker is gone."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from twisted.internet.defer import Deferred, fail

from kafkacompat.timers import Clock, DelayedCall

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.wire.schema import Request, Response

log = logging.getLogger(__name__)

BACKOFF_S = 0.1
"""Mean pause before a request is repeated (Kafka's RequestSendThread waits as long)."""

SendRequest: TypeAlias = "Callable[[Request], Deferred[Response]]"


class ChannelClosedError(Exception):
    """The broker is gone, or this node is no longer the controller."""


class _Waiting(NamedTuple):
    request: Request
    answered: Deferred[Response]


class BrokerChannel:
    """The queue of one broker. ``send`` sends it one request and fails when the connection does.

    Only one request is under way: a broker must receive the states of a partition in the order of the decisions.
    """

    def __init__(self, node_id: int, send: SendRequest, clock: Clock, rng: Random) -> None:
        self.node_id = node_id
        self._send = send
        self._clock = clock
        self._rng = rng
        self._waiting: deque[_Waiting] = deque()
        self._retry: DelayedCall | None = None
        self._closed = False
        self._is_failing = False

    def send(self, request: Request) -> Deferred[Response]:
        """Send a request after those before it; fires with the response, fails with ChannelClosedError."""
        if self._closed:
            return fail(ChannelClosedError(f"broker {self.node_id} is gone"))
        answered: Deferred[Response] = Deferred()
        self._waiting.append(_Waiting(request, answered))
        if len(self._waiting) == 1:
            self._send_first()
        return answered

    def _send_first(self) -> None:
        self._retry = None
        self._send(self._waiting[0].request).addCallbacks(self._on_answer, self._on_failure)

    def _on_answer(self, response: Response) -> None:
        if self._closed:
            return
        self._is_failing = False
        answered = self._waiting.popleft().answered
        if self._waiting:
            self._send_first()
        answered.callback(response)

    def _on_failure(self, failure: Failure) -> None:
        if self._closed:
            return
        if not self._is_failing:
            # One line for an outage: the broker may be starting, or its session has yet to expire.
            self._is_failing = True
            log.warning("Cannot send broker %d its state, and repeat until it is gone: %s", self.node_id, failure.value)
        self._retry = self._clock.callLater(BACKOFF_S * self._rng.uniform(0.5, 1.5), self._send_first)

    def close(self) -> None:
        """Send nothing more; what waits fails with ChannelClosedError."""
        self._closed = True
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.answered.errback(ChannelClosedError(f"broker {self.node_id} is gone"))
