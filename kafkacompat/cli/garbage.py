"""Full garbage collections at quiet moments.

A full collection takes 0.1 µs for each object, and a request of 100,000 items makes half a million objects while the broker
handles it. Python would make several full collections then and free nothing. The younger generations are collected as always.
A late collection costs little memory: no cycle of objects that outlives a request holds a connection or the contents of a request.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from kafkacompat.timers import PeriodicCall, has_waiting_work

if TYPE_CHECKING:
    from kafkacompat.timers import Clock

CHECK_EVERY_S = 10
MAX_PUT_OFF = 30
"""After this many checks in a row without a quiet moment, the collection happens all the same."""
_NEVER = 2**31 - 1


class FullCollections:
    """Makes full collections instead of Python, as rarely: after ten of the middle generation, and for a quarter of new objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._young, self._middle, self._full = gc.get_threshold()
        self._due = self._full
        self._put_off = 0

    def start(self) -> None:
        """Start checking; the objects that exist now live long, and collections leave them out."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(self._young, self._middle, _NEVER)
        looking = PeriodicCall(self._clock, self.collect_if_due)
        looking.start(CHECK_EVERY_S, now=False)

    def collect_if_due(self) -> None:
        """Collect if a full collection is due and no work waits for its turn."""
        if gc.get_count()[2] < self._due:
            return
        if has_waiting_work(self._clock) and self._put_off < MAX_PUT_OFF:
            self._put_off += 1
            return
        self._put_off = 0
        gc.collect()
        self._due = max(self._full, len(gc.get_objects(generation=2)) // 4 // (self._young * self._middle))
