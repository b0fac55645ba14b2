"""A network in memory: requests and responses take time on a clock, and some are lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse
from kafkacompat.wire.schema import Request, Response
from tests.kafkacompat.replication.serving import ServingBroker

Delays: TypeAlias = "tuple[float, float] | None"
"""Seconds that a request and its response take; None if one of them is lost."""

LINK_S = 0.001
LOST_S = 0.3


class UnreachableError(Exception):
    """The broker did not answer."""


def take_a_millisecond() -> Delays:
    """Return the delays of a network without faults."""
    return LINK_S, LINK_S


class Link:
    """One broker's connections to the others; a Fetch without data is answered at its deadline."""

    def __init__(
        self, clock: Clock, brokers: dict[int, ServingBroker], choose_delays: Callable[[], Delays] = take_a_millisecond
    ) -> None:
        self.clock = clock
        self.brokers = brokers
        self.choose_delays = choose_delays
        self.watch: Callable[[Request], None] = lambda _: None
        """Called with each request that is sent."""
        self.in_flight = 0
        self.most_in_flight = 0

    def send(self, node_id: int, request: Request, timeout_s: float) -> Deferred[Response]:
        self.watch(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        answered: Deferred[Response] = Deferred()
        answered.addBoth(self._end)
        delays = self.choose_delays()
        broker = self.brokers.get(node_id)
        if delays is None or broker is None:
            self.clock.callLater(LOST_S, self._lose, answered, node_id)
        else:
            self.clock.callLater(delays[0], self._serve, node_id, request, answered, delays[1])
        return answered

    def _end(self, result: Response) -> Response:
        self.in_flight -= 1
        return result

    def _lose(self, answered: Deferred[Response], node_id: int) -> None:
        if not answered.called:
            answered.errback(UnreachableError(f"node {node_id} did not answer"))

    def _serve(self, node_id: int, request: Request, answered: Deferred[Response], delay_s: float) -> None:
        broker = self.brokers.get(node_id)
        if broker is None:
            self._lose(answered, node_id)
            return
        response = broker.serve(request, int(self.clock.seconds() * 1000))
        if isinstance(request, FetchRequest) and isinstance(response, FetchResponse) and not response.responses:
            delay_s += request.max_wait_ms / 1000
        self.clock.callLater(delay_s, self._answer, answered, response)

    def _answer(self, answered: Deferred[Response], response: Response) -> None:
        if not answered.called:
            answered.callback(response)
