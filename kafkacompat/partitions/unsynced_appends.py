"""Appends that are in the log and wait until they are on the disk."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.storage.log.log import AppendResult
from kafkacompat.wire.errors import KafkaError


class _Waiting(NamedTuple):
    result: AppendResult
    size_bytes: int
    answer: Deferred[AppendResult]


class UnsyncedAppends:
    """Those of one partition, in the order of the log; each is answered exactly once."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, result: AppendResult, size_bytes: int) -> Deferred[AppendResult]:
        """Let a batch wait; what it comes to fires the Deferred."""
        waiting = _Waiting(result, size_bytes, Deferred())
        self._waiting.append(waiting)
        return waiting.answer

    def take(self, end_offset: int) -> list[_Waiting]:
        """Take out what lies before an offset, to be answered."""
        taken = []
        while self._waiting and self._waiting[0].result.end.offset <= end_offset:
            taken.append(self._waiting.popleft())
        return taken

    def refuse(self, refusal: KafkaError) -> None:
        """Fail all of them."""
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.answer.errback(refusal)
