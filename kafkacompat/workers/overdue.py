"""A time limit for the answers of worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.timers import Clock, DelayedCall


class ComputingProcess(Protocol):
    """A process that computes an answer."""

    def give_up(self) -> None:
        """End it because it took too long."""


class AnswerTimeouts:
    """Ends each process that has owed an answer for ``timeout_s``; None means no limit.

    Threads wait for the answers. The reactor checks the clock, but only while there is work.
    """

    def __init__(self, clock: Clock, timeout_s: float | None) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._asked_s: dict[ComputingProcess, float] = {}
        self._works = 0
        self._next_check: DelayedCall | None = None

    @contextmanager
    def expect_answer(self, process: ComputingProcess) -> Iterator[None]:
        """Mark the time during which a thread waits for an answer of *process*."""
        self._asked_s[process] = self._clock.seconds()
        try:
            yield
        finally:
            del self._asked_s[process]

    @property
    def works(self) -> int:
        """How many works have begun and not ended."""
        return self._works

    def begin_work(self) -> None:
        """Start checking: a thread is about to wait for answers."""
        self._works += 1
        if self._next_check is None and self._timeout_s is not None:
            self._next_check = self._clock.callLater(self._timeout_s, self._end_overdue, self._timeout_s)

    def end_work(self) -> None:
        """Stop checking if no other work is left; call it once for each `begin_work`."""
        self._works -= 1
        if not self._works:
            self.stop()

    def stop(self) -> None:
        """Stop checking."""
        if self._next_check is not None:
            self._next_check.cancel()
            self._next_check = None

    def _end_overdue(self, timeout_s: float) -> None:
        since, now = dict(self._asked_s), self._clock.seconds()
        late = [process for process, asked_s in since.items() if asked_s + timeout_s <= now]
        for process in late:
            del since[process]
            process.give_up()
        # The oldest question is the next one that can be overdue; new questions come later.
        next_s = min(since.values(), default=now) + timeout_s
        self._next_check = self._clock.callLater(next_s - now, self._end_overdue, timeout_s)
