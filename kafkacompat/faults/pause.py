"""The pause of a broker: connections are accepted, and no request is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending

if TYPE_CHECKING:
    from kafkacompat.server.dispatcher import Answer
    from kafkacompat.timers import Clock, DelayedCall


class Pause:
    """The pause of one broker, by its clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ending: DelayedCall | None = None
        self._waiting: list[Deferred[None]] = []

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
        for ended in waiting:
            ended.callback(None)

    def answer_afterwards(self, dispatch: Callable[[], Answer]) -> Answer:
        """Answer a request once the broker is not paused any more; the connection starts no other request before."""

        async def answer() -> Any:
            await self._wait()
            outcome = dispatch()
            return await outcome.response if isinstance(outcome, Pending) else outcome

        return Pending(Deferred.fromCoroutine(answer()), in_order=True)

    async def _wait(self) -> None:
        while self:
            ended: Deferred[None] = Deferred()
            self._waiting.append(ended)
            await ended
