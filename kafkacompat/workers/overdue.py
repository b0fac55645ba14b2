"""An end to answers that do not come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.timers import Clock, DelayedCall


class Computing(Protocol):
    """A process, as far as it matters here."""

    def give_up(self) -> None:
        """End it because it took too long."""


class Overdue:
    """Ends each process that has owed an answer for ``timeout_s``; None: for ever.

    Threads wait for answers, and the reactor looks at the clock, but only while there is work.
    """

    def __init__(self, clock: Clock, timeout_s: float | None) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._asked_s: dict[Computing, float] = {}
        self._works = 0
        self._look: DelayedCall | None = None

    @contextmanager
    def owed_by(self, process: Computing) -> Iterator[None]:
        """In a thread: while it waits for an answer."""
        self._asked_s[process] = self._clock.seconds()
        try:
            yield
        finally:
            del self._asked_s[process]

    def work_begins(self) -> None:
        """Something will be asked."""
        self._works += 1
        if self._look is None and self._timeout_s is not None:
            self._look = self._clock.callLater(self._timeout_s, self._end_overdue, self._timeout_s)

    def work_ended(self) -> None:
        """As often as `work_begins`."""
        self._works -= 1
        if not self._works:
            self.stop()

    def stop(self) -> None:
        """Look no more."""
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _end_overdue(self, timeout_s: float) -> None:
        since, now = dict(self._asked_s), self._clock.seconds()
        late = [process for process, asked_s in since.items() if asked_s + timeout_s <= now]
        for process in late:
            del since[process]
            process.give_up()
        # The first that can be late next; what is asked from now on is later.
        next_s = min(since.values(), default=now) + timeout_s
        self._look = self._clock.callLater(next_s - now, self._end_overdue, timeout_s)
