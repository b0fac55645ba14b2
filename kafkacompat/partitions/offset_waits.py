"""Callers that wait until an offset of one partition is reached, in the order of their offsets."""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.wire.errors import KafkaError


class _Wait(NamedTuple):
    end_offset: int
    reached: Deferred[None]


def _end_offset_of(wait: _Wait) -> int:
    return wait.end_offset


class OffsetWaits:
    """Waits by offset; reaching an offset costs one step for each wait that it ends, however many others there are.

    A caller that gives up fires its Deferred itself. The wait is dropped when it gets to the front.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[_Wait] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end_offset: int) -> Deferred[None]:
        """Return a Deferred that fires when everything before *end_offset* counts, or fails with a refusal."""
        waiting = self._waiting
        while waiting and waiting[0].reached.called:
            waiting.popleft()
        wait = _Wait(end_offset, Deferred())
        if waiting and waiting[-1].end_offset > end_offset:
            # A batch that was sent again waits for the offset that it got the first time.
            insort_right(waiting, wait, key=_end_offset_of)
        else:
            waiting.append(wait)
        return wait.reached

    def release(self, offset: int) -> None:
        """End the waits for *offset* and all before."""
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= offset:
            reached = waiting.popleft().reached
            if not reached.called:
                reached.callback(None)

    def refuse(self, refusal: KafkaError) -> None:
        """Fail all waits."""
        waiting, self._waiting = self._waiting, deque()
        for wait in waiting:
            if not wait.reached.called:
                wait.reached.errback(refusal)
