"""Clocks, and sharing the reactor's thread: long work is done in turns, so that requests are served in between.

`Clock` is the part of a reactor that this needs: the time, and calls at a later time. Twisted's reactors and its
`task.Clock` both have it. Zope's `IReactorTime` describes the same, but type checkers do not understand it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import Cooperator, LoopingCall, deferLater

Item = TypeVar("Item")

IN_A_TURN = 200
"""Items, such as partitions at some microseconds each, in one turn of `yield_unhurried`."""

SORTED_IN_A_TURN = 2_000
"""Items that `sort_in_turns` sorts in one turn."""

TURN_SECONDS = 0.01
"""Length of a turn in seconds; work that takes longer is done in several turns of the reactor."""

UNDER_WAY = 16
"""Operations of `run_few_at_a_time` that run at a time.

They keep a directory's thread busy, and are few enough that other operations on the disk wait only a little."""


class DelayedCall(Protocol):
    """A call that will be made, unless it is cancelled."""

    def active(self) -> bool:
        """Whether the call is still to come."""

    def cancel(self) -> None:
        """Do not make the call."""

    def reset(self, seconds: float) -> None:
        """Make the call this many seconds from now instead."""

    def getTime(self) -> float:
        """Return the time of the call, in the clock's seconds."""


class Clock(Protocol):
    """Time in seconds, and calls at a later time."""

    def seconds(self) -> float:
        """Return the time now, in seconds since the epoch; it is for durations (see `SteadyClock`)."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """Call *callable* after *delay* seconds."""


class SteadyClock(ABC):
    """A clock whose ``seconds`` go on evenly when the machine's clock is set, so that no timer stands still or ends early."""

    @abstractmethod
    def time_of_day(self) -> float:
        """Return the time of the machine's clock, in seconds since the epoch."""


def now_ms(clock: Clock) -> int:
    """Return the time of day in milliseconds since the epoch, for timestamps; it may jump. A simple clock has one time only."""
    return int((clock.time_of_day() if isinstance(clock, SteadyClock) else clock.seconds()) * 1000)


def steady_ms(clock: Clock) -> int:
    """Return the time in milliseconds, for durations."""
    return int(clock.seconds() * 1000)


class PeriodicCall(LoopingCall):
    """A LoopingCall on a clock, begun by ``start(interval_s)``.

    The constructor of the parent class installs Twisted's global reactor. That one belongs to the program, which may choose
    another kind later.
    """

    def __init__(self, clock: Clock, function: Callable[..., object], *args: object) -> None:
        self.f = function
        self.a = args
        self.kw = {}
        self.clock = clock  # type: ignore[assignment]  # it fits IReactorTime


def find_real_clock(clock: Clock) -> Clock:
    """Return the clock of the machine, which differs from *clock* where a test advances it."""
    real: Clock = getattr(clock, "real_clock", clock)
    return real


def make_cooperator(clock: Clock) -> Cooperator:
    """Return a cooperator that takes one step of its iterators in each turn of the reactor."""
    later: Any = clock.callLater
    return Cooperator(lambda: lambda: True, lambda step: later(0, step))


async def yield_unhurried(clock: Clock, items: Iterable[Item], in_a_turn: int = IN_A_TURN) -> AsyncIterator[Item]:
    """Yield the items, and let others have a turn after every *in_a_turn* of them."""
    for count, item in enumerate(items, 1):
        yield item
        if count % in_a_turn == 0:
            await deferLater(clock, 0)  # type: ignore[arg-type]


class _TurnQueue:
    """The work that waits for a turn: one piece runs in each turn of the reactor, so that requests wait for one."""

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


_turn_queues: WeakKeyDictionary[Clock, _TurnQueue] = WeakKeyDictionary()


def next_turn(clock: Clock) -> Deferred[None]:
    """Return a Deferred that fires in the caller's next turn, after the turns of all work that waits already."""
    return _turn_queues.setdefault(clock, _TurnQueue()).join(clock)


def has_waiting_work(clock: Clock) -> bool:
    """Return whether any work waits for a turn, so that the reactor is busy."""
    return bool(_turn_queues.get(clock))


async def yield_in_turns(clock: Clock, items: Iterable[Item]) -> AsyncIterator[Item]:
    """Yield the items, and let others have a turn whenever `TURN_SECONDS` have passed."""
    turn_ends = clock.seconds() + TURN_SECONDS
    for item in items:
        yield item
        if clock.seconds() >= turn_ends:
            await next_turn(clock)
            turn_ends = clock.seconds() + TURN_SECONDS


async def sort_in_turns(clock: Clock, items: Sequence[Item], key: Callable[[Item], Any]) -> list[Item]:
    """Return the items in the order of their keys: runs of `SORTED_IN_A_TURN` are sorted in a turn each, and merged in turns."""
    runs: list[list[Item]] = []
    for begin in range(0, len(items), SORTED_IN_A_TURN):
        if runs:
            await next_turn(clock)
        runs.append(sorted(items[begin : begin + SORTED_IN_A_TURN], key=key))
    if len(runs) <= 1:
        return runs[0] if runs else []
    return [item async for item in yield_in_turns(clock, merge(*runs, key=key))]


def make_steps(clock: Clock, steps: Iterator[object]) -> Deferred[None] | None:
    """Take every step: return None if that fits into this turn, else a Deferred that fires after later turns."""
    turn_ends = clock.seconds() + TURN_SECONDS
    for _ in steps:
        if clock.seconds() >= turn_ends:
            return Deferred.fromCoroutine(_continue_in_turns(clock, steps))
    return None


async def take_steps(clock: Clock, steps: Iterator[object]) -> None:
    """Take every step, in later turns too; return when all are taken."""
    later = make_steps(clock, steps)
    if later is not None:
        await later


async def _continue_in_turns(clock: Clock, steps: Iterator[object]) -> None:
    await next_turn(clock)
    async for _ in yield_in_turns(clock, steps):
        pass


def run_few_at_a_time(
    begin: Callable[[Item], Deferred[Any]], items: Sequence[Item], at_once: int = UNDER_WAY
) -> Deferred[None]:
    """Call *begin* for every item, with at most *at_once* operations under way.

    Fires when all have ended; fails with the first failure then.
    """
    remaining, problems = iter(items), list[Exception]()

    async def run_some() -> None:
        for item in remaining:
            try:
                await begin(item)
            except Exception as problem:
                problems.append(problem)

    async def run_all() -> None:
        await gatherResults([Deferred.fromCoroutine(run_some()) for _ in range(min(len(items), at_once))])
        if problems:
            raise problems[0]

    return Deferred.fromCoroutine(run_all())
