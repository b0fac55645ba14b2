"""When the garbage collector looks at everything that is there: at quiet moments.

A full collection takes a tenth of a microsecond for each object, and a request of 100,000 things is half a million while it
is handled. Python would make several then, and find nothing; the younger generations are collected as always. To put one off
costs little memory: no connection, nor what was read of a request, is held by a circle that lived longer than one request.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from twisted.internet.task import LoopingCall

from kafkacompat.timers import somebody_waits

if TYPE_CHECKING:
    from kafkacompat.timers import Clock

LOOK_EVERY_S = 10
MAX_PUT_OFF = 30
"""So many looks in a row may find no quiet moment; then it is made all the same."""
_NEVER = 2**31 - 1


class FullCollections:
    """Makes them in Python's place, as rarely: when ten of the middle generation, and a quarter of what is there, are new."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._young, self._middle, self._full = gc.get_threshold()
        self._due = self._full
        self._put_off = 0

    def start(self) -> None:
        """Begin: what is there now lives long and is not looked at again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(self._young, self._middle, _NEVER)
        looking = LoopingCall(self.look)
        looking.clock = self._clock  # type: ignore[assignment]
        looking.start(LOOK_EVERY_S, now=False)

    def look(self) -> None:
        """Collect if there is reason to and nobody is at work."""
        if gc.get_count()[2] < self._due:
            return
        if somebody_waits(self._clock) and self._put_off < MAX_PUT_OFF:
            self._put_off += 1
            return
        self._put_off = 0
        gc.collect()
        self._due = max(self._full, len(gc.get_objects(generation=2)) // 4 // (self._young * self._middle))
