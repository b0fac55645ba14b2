"""Virtual time: the calls of all machines in one heap, made one after the other.

A `Lane` is one machine: its calls are made in their order. Which of several machines comes first in the same instant is drawn
from the seed. Time jumps from call to call.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random
from struct import Struct
from typing import Any
from zlib import crc32

MOST_CALLS = 1_000_000
"""Most calls of a run; a usual one makes some 20,000."""

_STEP = Struct("<dI")


class LaneCall:
    """A call to come; see timers.DelayedCall."""

    __slots__ = ("arguments", "clock", "function", "keywords", "number", "time")

    def __init__(
        self, clock: Lane | MachineClock, time: float, function: Callable[..., object], arguments: Any, keywords: Any
    ) -> None:
        self.clock = clock
        self.time = time
        self.number = -1
        self.function: Callable[..., object] | None = function
        self.arguments = arguments
        self.keywords = keywords

    def active(self) -> bool:
        """See DelayedCall."""
        return self.function is not None

    def cancel(self) -> None:
        """See DelayedCall."""
        self.function = self.arguments = self.keywords = None
        self.number = -1

    def reset(self, seconds: float) -> None:
        """See DelayedCall."""
        self.time = self.clock.seconds() + seconds
        self.clock.enter(self)

    def getTime(self) -> float:
        """See DelayedCall."""
        return self.time


class Timeline:
    """The heap. ``trace`` is a checksum of every call that was made, and of what `note` was given."""

    def __init__(self, seed: int, start_s: float) -> None:
        self.now = start_s
        self.calls = 0
        self.trace = 0
        self._seed = seed
        self._heap: list[tuple[float, int, int, LaneCall, Lane]] = []
        self._numbers = count()
        self._lanes: dict[str, Lane] = {}

    def lane(self, name: str) -> Lane:
        """The lane of a machine."""
        if name not in self._lanes:
            self._lanes[name] = Lane(self, len(self._lanes), Random(f"{self._seed} {name}").getrandbits(32))
        return self._lanes[name]

    def note(self, data: bytes) -> None:
        """Let the trace depend on *data*."""
        self.trace = crc32(data, self.trace)

    def enter(self, call: LaneCall, lane: Lane, time: float) -> None:
        """Make a call at a time, instead of at an earlier one that was entered."""
        call.number = number = next(self._numbers)
        heappush(self._heap, (time, hash((time, lane.salt)), number, call, lane))

    def move(self, clock: MachineClock) -> None:
        """Find the times of a clock's calls anew: the clock has changed."""
        moved = [entry for entry in self._heap if entry[3].clock is clock and entry[3].number == entry[2]]
        for *_, call, _ in moved:
            call.number = -1
        self._heap = [entry for entry in self._heap if entry[3].number == entry[2]]
        heapify(self._heap)
        for *_, call, _ in sorted(moved):
            clock.enter(call)

    def run(self, until_s: float, is_over: Callable[[], bool]) -> None:
        """Make the calls until that time; ends earlier if *is_over* says so after a call."""
        while (heap := self._heap) and heap[0][0] <= until_s:
            time, _, number, call, lane = heappop(heap)
            if call.number != number:
                continue
            if lane.is_paused:
                lane.held.append((call, number))
                continue
            self.now = max(self.now, time)
            function, arguments, keywords = call.function, call.arguments, call.keywords
            assert function is not None
            call.function = None
            self.calls += 1
            if self.calls > MOST_CALLS:
                raise RuntimeError(f"more than {MOST_CALLS} calls: something is repeated without end")
            self.trace = crc32(_STEP.pack(time, lane.number), self.trace)
            function(*arguments, **keywords)
            if is_over():
                return
        self.now = max(self.now, until_s)


class Lane:
    """A machine's place on the timeline, with true time: a Clock. While it is paused no call of it is made."""

    def __init__(self, timeline: Timeline, number: int, salt: int) -> None:
        self.timeline = timeline
        self.number = number
        self.salt = salt
        self.is_paused = False
        self.held: list[tuple[LaneCall, int]] = []

    def seconds(self) -> float:
        """See Clock."""
        return self.timeline.now

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> LaneCall:
        """See Clock."""
        assert delay >= 0, delay
        call = LaneCall(self, self.timeline.now + delay, callable, args, kwargs)
        self.timeline.enter(call, self, call.time)
        return call

    def enter(self, call: LaneCall) -> None:
        """Make a call at its time."""
        self.timeline.enter(call, self, call.time)

    def pause(self) -> None:
        """Make no calls until `resume`."""
        self.is_paused = True

    def resume(self) -> None:
        """Make the calls that are due, in their order."""
        self.is_paused = False
        held, self.held = self.held, []
        for call, number in held:
            if call.number == number:
                self.timeline.enter(call, self, self.timeline.now)


class MachineClock:
    """The clock of one process: fast or slow by a *rate*, perhaps set wrong, and dead after `kill`.

    As in Twisted's reactors, a call is due when the clock shows its time: if the clock jumps, so do the calls.
    """

    def __init__(self, lane: Lane, rate: float = 1.0) -> None:
        self._lane = lane
        self._rate = rate
        self._true_s = lane.seconds()
        self._local_s = self._true_s
        self._is_dead = False

    def seconds(self) -> float:
        """See Clock."""
        return self._local_s + (self._lane.timeline.now - self._true_s) * self._rate

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> LaneCall:
        """See Clock."""
        assert delay >= 0, delay
        call = LaneCall(self, self.seconds() + delay, callable, args, kwargs)
        lane = self._lane
        if not self._is_dead:
            # Not by way of the local time: a call at once is one at this instant, whatever the rate.
            lane.timeline.enter(call, lane, lane.timeline.now + delay / self._rate)
        return call

    def enter(self, call: LaneCall) -> None:
        """Make a call when this clock shows its time."""
        now = self._lane.timeline.now
        if not self._is_dead:
            self._lane.timeline.enter(call, self._lane, max(now, now + (call.time - self.seconds()) / self._rate))

    def jump(self, seconds: float) -> None:
        """Show another time from now on."""
        self._local_s, self._true_s = self.seconds() + seconds, self._lane.timeline.now
        self._lane.timeline.move(self)

    def kill(self) -> None:
        """Make no call any more."""
        self._is_dead = True
        self._lane.timeline.move(self)
        self._lane.held = [entry for entry in self._lane.held if entry[0].clock is not self]
