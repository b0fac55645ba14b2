"""The pause of a broker: connections are accepted, and no request is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.faults.client_work import ClientWork
from kafkacompat.handlers.context import Pending, UnanswerableError

if TYPE_CHECKING:
    from kafkacompat.server.dispatcher import Answer
    from kafkacompat.timers import Clock, DelayedCall


MOST_WAITING_BYTES = 64 << 20
"""Bytes of the requests that wait, with those of clients that have left: a client that waits in vain connects again."""


class Pause:
    """The pause of one broker, by its clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ending: DelayedCall | None = None
        self._waiting: list[Deferred[None]] = []
        self._waiting_bytes = 0

    def __bool__(self) -> bool:
        """Whether the broker is paused now."""
        return self._ending is not None

    def begin(self, duration_ms: int) -> None:
        """Pause, unless the broker is paused already."""
        if self._ending is None:
            self._ending = self._clock.callLater(duration_ms / 1000, self.end)

    def end(self) -> None:
        """End the pause, if there is one: its time has passed, or the rules are removed."""
        ending, self._ending = self._ending, None
        if ending is not None and ending.active():
            ending.cancel()
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        for ended in waiting:
            ended.callback(None)

    def answer_afterwards(self, dispatch: Callable[[], Answer], size_bytes: int) -> Answer:
        """Answer a request once the broker is not paused any more; the connection starts no other request before.

        The request is carried out even if its client has left. Fails with UnanswerableError while requests of `MOST_WAITING_BYTES`
        wait.
        """
        work = ClientWork(must_complete=True)

        async def answer() -> Any:
            await self._wait(size_bytes)
            outcome = dispatch()
            if not isinstance(outcome, Pending):
                return outcome
            work.must_complete = not outcome.abandonable
            if work.has_no_client and outcome.abandonable:
                outcome.response.cancel()
            return await outcome.response

        return Pending(work.begin(answer()), in_order=True, abandonable=True)

    async def _wait(self, size_bytes: int) -> None:
        while self:
            if self._waiting_bytes + size_bytes > MOST_WAITING_BYTES:
                raise UnanswerableError(
                    f"{self._waiting_bytes} bytes of requests wait for the end of a pause by faults"
                )
            self._waiting_bytes += size_bytes
            ended: Deferred[None] = Deferred()
            self._waiting.append(ended)
            await ended
