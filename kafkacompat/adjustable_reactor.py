"""A reactor whose time tests advance: retention, sessions and timeouts of hours pass in milliseconds.

The rules of `AdjustableReactor.advance`, which docs/testing/clock.md explains:

* The clock jumps to the time of the next delayed call, and again, until the duration is used up. It never goes back.
* The calls of one jump are made in the order of their times. After the calls of each time the base reactor has turns, until the
  disks, the worker processes and the connections of this process are quiet.
* The first `EXACT_JUMPS` jumps are as short as the calls require. The others divide the remaining time, so that an advance takes
  at most `MOST_JUMPS`. Periodic work with a shorter interval then runs once a jump, as on a machine that was suspended: a day of
  a 100 ms timer costs no million calls.
* Real time passes during an advance and is not subtracted.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol
from weakref import WeakSet

from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.timers import SteadyClock

log = logging.getLogger(__name__)

EXACT_JUMPS = 120
MOST_JUMPS = 240
"""Jumps of one advance: those of a day are twelve minutes long where calls are due all the time."""
MOST_TURNS = 8
"""Turns after the calls of one time in which connections are busy: clients of other processes may never be quiet."""
MOST_DUE_TURNS = 10_000
"""Turns after the calls of one time in which further calls are due at once."""
POLL_S = 0.01
"""Real time after which the operations of disks and worker processes are counted again, unless one has ended before."""
OPERATIONS_TIMEOUT_S = 60.0
"""Real time that one advance waits for operations of disks and worker processes at a time."""
STEP_S = 1e-6
"""What a jump adds to reach a time: two neighbouring times of today differ by a quarter of this, as floating-point numbers."""
MOST_WAITING = 100
"""Advances that wait for earlier ones to end."""
LAST_SECOND = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch: the last time that the clock may show."""


class ClockError(ValueError):
    """The clock cannot be advanced as requested; one sentence for the user."""


class Operations(Protocol):
    """Work outside the reactor's thread, such as that of a disk's thread or of worker processes."""

    @property
    def pending(self) -> int:
        """How many operations wait or run."""


class _Entry(NamedTuple):
    time_s: float
    number: int
    call: DelayedCall


class _CallQueue:
    """Delayed calls in the order of their times; calls of the same time are in the order of their creation."""

    def __init__(self, seconds: Callable[[], float], on_cancelled: Callable[[], None]) -> None:
        self._seconds = seconds
        self._on_cancelled = on_cancelled
        self._entries: list[_Entry] = []
        self._cancelled = 0
        self._last_number = 0

    def add(self, time_s: float, function: Callable[..., object], args: Any, kwargs: Any) -> DelayedCall:
        call = DelayedCall(time_s, function, args, kwargs, self._note_cancelled, self._move_ahead, self._seconds)
        self._push(call)
        return call

    def _push(self, call: DelayedCall) -> None:
        call.activate_delay()
        self._last_number += 1
        heappush(self._entries, _Entry(call.time, self._last_number, call))

    def _note_cancelled(self, call: DelayedCall) -> None:
        # Twisted sets this after it has called.
        call.cancelled = 1
        self._cancelled += 1
        if self._cancelled > 50 and self._cancelled > len(self._entries) // 2:
            self._keep(lambda call: bool(call.active()))
            self._cancelled = 0
        self._on_cancelled()

    def _move_ahead(self, call: DelayedCall) -> None:
        """Note that a call has an earlier time now."""
        self._keep(lambda other: other is not call)
        self._push(call)

    def _keep(self, is_kept: Callable[[DelayedCall], bool]) -> None:
        self._entries = [entry for entry in self._entries if is_kept(entry.call)]
        heapify(self._entries)

    def find_next_time(self) -> float | None:
        """Return the time of the first active call; None without any."""
        while self._entries:
            time_s, _, call = self._entries[0]
            if call.active() and call.getTime() <= time_s:
                return time_s
            heappop(self._entries)
            self.put_back(call)
        return None

    def put_back(self, call: DelayedCall) -> None:
        """Queue a call again whose time is later now, unless it is cancelled."""
        if call.active():
            self._push(call)

    def take_due(self, now_s: float) -> list[_Entry]:
        """Remove and return the calls whose time has come."""
        due = []
        while (time_s := self.find_next_time()) is not None and time_s <= now_s:
            due.append(heappop(self._entries))
        return due

    def list_active(self) -> list[DelayedCall]:
        return [entry.call for entry in self._entries if entry.call.active()]


class AdjustableReactor(SteadyClock):
    """A reactor for one broker, or for the brokers of one cluster, whose time `advance` moves forward.

    Time and delayed calls are its own. Everything else is the *base* reactor's, so that several brokers with different
    times share one thread. The base's ``time_of_day`` counts if it is a SteadyClock, its ``seconds`` otherwise.
    """

    def __init__(self, base: Any) -> None:
        self._base = base
        self._advanced_s = 0.0
        self._calls = _CallQueue(self.seconds, self._set_alarm)
        self._alarm: Any = None
        self._operations: WeakSet[Operations] = WeakSet()
        self._advances = DeferredLock()
        self._is_advancing = False
        self._is_used = False
        self._waking: Any = None

    def __getattr__(self, name: str) -> Any:
        """Pass everything that is not time to the base reactor."""
        return getattr(self._base, name)

    def callFromThread(self, callable: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        """Twisted: call *callable* in the reactor's thread; an advance that waits for an operation goes on then."""
        self._base.callFromThread(self._call_from_thread, callable, args, kwargs)

    def _call_from_thread(self, function: Callable[..., object], args: Any, kwargs: Any) -> None:
        if self._waking is not None and self._waking.active():
            self._waking.reset(0)
        function(*args, **kwargs)

    # Time

    @property
    def real_clock(self) -> Any:
        """The base reactor, whose time nobody advances; see `timers.find_real_clock`."""
        return self._base

    @property
    def advanced_s(self) -> float:
        """The seconds by which the clock is ahead of the base reactor's."""
        return self._advanced_s

    def seconds(self) -> float:
        """See Clock."""
        self._is_used = True
        return self._now()

    def _now(self) -> float:
        return float(self._base.seconds()) + self._advanced_s

    def time_of_day(self) -> float:
        """See SteadyClock."""
        self._is_used = True
        base = self._base
        return float(base.time_of_day() if isinstance(base, SteadyClock) else base.seconds()) + self._advanced_s

    # Delayed calls

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """See Clock."""
        self._is_used = True
        call = self._calls.add(self._now() + max(delay, 0), callable, args, kwargs)
        self._set_alarm()
        return call

    def getDelayedCalls(self) -> list[DelayedCall]:
        """Return the calls that are still to come."""
        return self._calls.list_active()

    def _set_alarm(self) -> None:
        """Let the base reactor call at the time of the first call; an advance makes the calls itself."""
        next_s = None if self._is_advancing else self._calls.find_next_time()
        alarm = self._alarm
        if next_s is None:
            if alarm is not None:
                alarm.cancel()
                self._alarm = None
            return
        delay_s = max(next_s - self._now(), 0)
        if alarm is None:
            self._alarm = self._base.callLater(delay_s, self._make_calls)
        elif alarm.getTime() > self._base.seconds() + delay_s:
            alarm.reset(delay_s)

    def _make_calls(self) -> None:
        self._alarm = None
        self._make(self._calls.take_due(self._now()))
        self._set_alarm()

    def _make(self, entries: Iterable[_Entry]) -> None:
        """Make calls that are due, except those that were cancelled or postponed by an earlier one."""
        for time_s, _, call in entries:
            if not call.active() or call.getTime() > time_s:
                self._calls.put_back(call)
                continue
            call.called = 1
            try:
                call.func(*call.args, **call.kw)
            except Exception:
                log.exception("A delayed call failed")

    # Advancing

    def watch(self, operations: Operations) -> None:
        """Let each advance wait until these operations have ended. The clock keeps no reference to them."""
        self._operations.add(operations)

    def advance(self, seconds: float) -> Deferred[None]:
        """Advance the clock; fires when the work that became due is done. Advances run one after the other.

        Raises ClockError if the duration is negative, no time of day is that late, or too many advances wait. Fails with a
        ClockError if an operation of a disk or of a worker process takes longer than `OPERATIONS_TIMEOUT_S`.
        """
        if not seconds >= 0:
            raise ClockError(f"the clock cannot be advanced by {seconds:g} s: it never goes back")
        if not math.isfinite(seconds) or self.time_of_day() + seconds > LAST_SECOND:
            raise ClockError(f"the clock cannot be advanced by {seconds:g} s: it ends with the year 9999")
        if len(self._advances.waiting) >= MOST_WAITING:
            raise ClockError(f"{MOST_WAITING} advances of the clock wait for earlier ones: wait until they have ended")
        return self._advances.run(lambda: Deferred.fromCoroutine(self._advance(seconds)))

    async def _advance(self, duration_s: float) -> None:
        self._is_advancing = True
        self._set_alarm()
        try:
            await self._settle()
            left_s, jumps = duration_s, 0
            while left_s > 0:
                shortest_s = 0.0 if jumps < EXACT_JUMPS else left_s / (MOST_JUMPS - jumps)
                next_s = self._calls.find_next_time()
                jump_s = left_s if next_s is None else min(max(next_s - self._now() + STEP_S, shortest_s), left_s)
                left_s -= jump_s
                jumps += 1
                self._advanced_s += jump_s
                await self._make_overdue()
        finally:
            self._is_advancing = False
            self._set_alarm()

    async def _make_overdue(self) -> None:
        """Make the calls of a jump, those of each time once the ones before have taken effect."""
        overdue = self._calls.take_due(self._now())
        try:
            while overdue:
                time_s = overdue[0].time_s
                count = next((number for number, entry in enumerate(overdue) if entry.time_s > time_s), len(overdue))
                due, overdue = overdue[:count], overdue[count:]
                self._make(due)
                await self._settle()
        finally:
            # After an advance that has failed, they are made in real time.
            for entry in overdue:
                self._calls.put_back(entry.call)

    async def _settle(self) -> None:
        """Let the base reactor have turns until nothing happens in one."""
        deadline_s = self._base.seconds() + OPERATIONS_TIMEOUT_S
        turns = 0
        while True:
            self._is_used = False
            was_pending = self._count_pending()
            turn: Deferred[None] = Deferred()
            self._waking = self._base.callLater(POLL_S if was_pending else 0, turn.callback, None)
            await turn
            due = self._calls.take_due(self._now())
            self._make(due)
            if was_pending or self._count_pending():
                self._check_deadline(deadline_s)
                continue
            turns += 1
            if turns >= MOST_DUE_TURNS or (not due and (not self._is_used or turns >= MOST_TURNS)):
                return

    def _count_pending(self) -> int:
        return sum(operations.pending for operations in self._operations)

    def _check_deadline(self, deadline_s: float) -> None:
        if self._base.seconds() > deadline_s:
            raise ClockError(
                f"the clock has stopped before the end of the advance: {self._count_pending()} operations of disks and "
                f"worker processes have not ended within {OPERATIONS_TIMEOUT_S:g} s"
            )
