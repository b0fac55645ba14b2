"""What is needed of a reactor by code that waits: the time, and to be called later.

Twisted's reactors and its `task.Clock` both fit; zope's `IReactorTime` says the same, but not to a type checker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Cooperator, deferLater

Item = TypeVar("Item")

IN_A_TURN = 200
"""So many partitions, at some microseconds each, are looked at before everybody else has a turn."""

TURN_SECONDS = 0.01
"""What takes longer is done in several turns of the reactor."""

UNDER_WAY = 16
"""So many partitions of a topic are opened or deleted at a time: a directory's thread has the next one, and others wait little."""


class DelayedCall(Protocol):
    """A call that will be made, unless it is cancelled."""

    def active(self) -> bool:
        """Whether the call is still to come."""

    def cancel(self) -> None:
        """Do not make the call."""

    def reset(self, seconds: float) -> None:
        """Make it this many seconds from now instead."""

    def getTime(self) -> float:
        """When it will be made, on the clock's scale."""


class Clock(Protocol):
    """Time in seconds, and calls at a later time."""

    def seconds(self) -> float:
        """The time now."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """Call *callable* after *delay* seconds."""


def now_ms(clock: Clock) -> int:
    """The clock's time in milliseconds."""
    return int(clock.seconds() * 1000)


def make_cooperator(clock: Clock) -> Cooperator:
    """What goes through iterators one step a turn of the reactor, so that requests are answered in between."""
    later: Any = clock.callLater
    return Cooperator(lambda: lambda: True, lambda step: later(0, step))


async def yield_unhurried(clock: Clock, items: Iterable[Item], in_a_turn: int = IN_A_TURN) -> AsyncIterator[Item]:
    """The items, with a turn for everybody else behind every so many of them."""
    for count, item in enumerate(items, 1):
        yield item
        if count % in_a_turn == 0:
            await deferLater(clock, 0)  # type: ignore[arg-type]


class _Line:
    """Who waits for a turn: each turn of the reactor is one of them's, so that all of them together keep nobody for long."""

    def __init__(self) -> None:
        self._waiting: deque[Deferred[None]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, clock: Clock) -> Deferred[None]:
        turn: Deferred[None] = Deferred()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            clock.callLater(0, self._next, clock)
        return turn

    def _next(self, clock: Clock) -> None:
        turn = self._waiting.popleft()
        if self._waiting:
            clock.callLater(0, self._next, clock)
        turn.callback(None)


_lines: WeakKeyDictionary[Clock, _Line] = WeakKeyDictionary()


def next_turn(clock: Clock) -> Deferred[None]:
    """Wait for one's next turn, behind everybody who waits for one."""
    return _lines.setdefault(clock, _Line()).join(clock)


def somebody_waits(clock: Clock) -> bool:
    """Whether anybody waits for a turn, and so has much in hand."""
    return bool(_lines.get(clock))


async def yield_in_turns(clock: Clock, items: Iterable[Item]) -> AsyncIterator[Item]:
    """The items, with a turn for everybody else whenever they have taken `TURN_SECONDS`."""
    turn_ends = clock.seconds() + TURN_SECONDS
    for item in items:
        yield item
        if clock.seconds() >= turn_ends:
            await next_turn(clock)
            turn_ends = clock.seconds() + TURN_SECONDS


def make_steps(clock: Clock, steps: Iterator[object]) -> Deferred[None] | None:
    """Make every step: None where that is done at once, else fires when it is, in later turns."""
    turn_ends = clock.seconds() + TURN_SECONDS
    for _ in steps:
        if clock.seconds() >= turn_ends:
            return Deferred.fromCoroutine(_go_on(clock, steps))
    return None


async def _go_on(clock: Clock, steps: Iterator[object]) -> None:
    await next_turn(clock)
    async for _ in yield_in_turns(clock, steps):
        pass


def run_few_at_a_time(
    begin: Callable[[Item], Deferred[Any]], items: Sequence[Item], at_once: int = UNDER_WAY
) -> Deferred[None]:
    """Begin one after the other, the next one when one has ended; fires when all have, or fails with what one failed with."""
    left, problems = iter(items), list[Exception]()

    async def some() -> None:
        for item in left:
            try:
                await begin(item)
            except Exception as problem:
                problems.append(problem)

    async def all_of_them() -> None:
        await gatherResults([Deferred.fromCoroutine(some()) for _ in range(min(len(items), at_once))])
        if problems:
            raise problems[0]

    return Deferred.fromCoroutine(all_of_them())
