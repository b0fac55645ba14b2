"""Disks on which everything takes time: operations are done in order, and their results arrive later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.timers import Clock

Owner = TypeVar("Owner")


class DiskSpeed:
    """How long a disk takes: mostly *usual_s*, rarely twenty times that more; ``factor`` makes it slow for a while.

    The two are not multiplied: an operation would last for minutes after the fault has ended.
    """

    def __init__(self, usual_s: float, rng: Random) -> None:
        self.factor = 1.0
        self._usual_s = usual_s
        self._rng = rng

    def draw_s(self) -> float:
        """Return the duration of an operation."""
        drawn = self._rng.random()
        return self._usual_s * (self.factor * (0.2 + drawn) + (20 * drawn if drawn > 0.98 else 0))

    def shuffle(self, items: list[Any]) -> None:
        """Put what is done at the same time in the order in which it ends."""
        self._rng.shuffle(items)


class _Work(NamedTuple):
    steps: list[Callable[[], Any]]
    result: Deferred[Any]


class SimulatedDisk(Generic[Owner]):
    """Implements `OwnedDisk`: each operation happens in the middle of its time, and is answered at the end of it.

    ``owner`` is the process that uses it, whose *clock* makes the calls: a killed process does nothing more.
    """

    def __init__(self, owner: Owner, clock: Clock, speed: DiskSpeed) -> None:
        self.owner = owner
        self._clock = clock
        self._speed = speed
        self._waiting: deque[_Work] = deque()

    @property
    def pending(self) -> int:
        """See OwnedDisk.pending."""
        return len(self._waiting)

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """See Disk.run."""
        return self._add([partial(function, *args, **kwargs)])

    def run_each(self, function: Callable[[Any], object], items: Sequence[Any]) -> Deferred[None]:
        """See Disk.run_each: in any order, and others at the same time see some done."""
        shuffled = list(items)
        self._speed.shuffle(shuffled)
        return self._add([partial(function, item) for item in shuffled]).addCallback(lambda _: None)

    def close(self) -> None:
        """See OwnedDisk.close."""
        while self._waiting:
            self._end(self._waiting[0], _perform(self._waiting[0].steps))

    def _add(self, steps: list[Callable[[], Any]]) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        self._waiting.append(_Work(steps, result))
        if len(self._waiting) == 1:
            self._begin()
        return result

    def _begin(self) -> None:
        self._clock.callLater(self._speed.draw_s(), self._step, self._waiting[0], 0, None)

    def _step(self, work: _Work, number: int, outcome: Any) -> None:
        if not self._waiting or self._waiting[0] is not work:
            return
        performed = _perform(work.steps[number : number + 1])
        outcome = outcome if isinstance(outcome, Failure) else performed
        if number + 1 < len(work.steps):
            self._clock.callLater(self._speed.draw_s() / len(work.steps), self._step, work, number + 1, outcome)
        else:
            self._clock.callLater(self._speed.draw_s(), self._end, work, outcome)

    def _end(self, work: _Work, outcome: Any) -> None:
        if not self._waiting or self._waiting[0] is not work:
            return
        self._waiting.popleft()
        if self._waiting:
            self._begin()
        work.result.callback(outcome)


def _perform(steps: Sequence[Callable[[], Any]]) -> Any:
    """Take the steps; return the last one's result, or the first failure."""
    outcome: Any = None
    for step in steps:
        try:
            result = step()
        except Exception:
            result = Failure()
        outcome = outcome if isinstance(outcome, Failure) else result
    return outcome
