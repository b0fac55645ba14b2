"""The appends of one Produce request with acks=all, while they wait for the in-sync replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredList

from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.timers import Clock


class ReplicaAcks:
    """Waits of one request, with one deadline for all of them: ``timeout_ms`` of the request.

    At the deadline the waits fail with KafkaError REQUEST_TIMED_OUT; the records stay in the log.
    """

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._waits: list[Deferred[None]] = []

    def add(self, replicated: Deferred[None]) -> None:
        """Add a wait, whose callbacks put its outcome into the response."""
        self._waits.append(replicated)

    def wait(self) -> Deferred[object]:
        """Start the deadline; fires when every wait has ended."""
        deadline = self._clock.callLater(max(0, self._timeout_ms) / 1000, self._expire)

        def finish(_: object) -> None:
            if deadline.active():
                deadline.cancel()

        waits = self._waits
        ended: Deferred[Any] = waits[0] if len(waits) == 1 else DeferredList(waits)
        return ended.addCallback(finish)

    def _expire(self) -> None:
        problem = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the in-sync replicas did not get the batch in time")
        for replicated in self._waits:
            if not replicated.called:
                replicated.errback(problem)
