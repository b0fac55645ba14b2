"""The appends of one partition that are in its log and not on the disk yet."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.storage.log.log import AppendResult
from kafkacompat.wire.errors import KafkaError


class _WaitingAppend(NamedTuple):
    result: AppendResult
    size_bytes: int
    answer: Deferred[AppendResult]


class UnsyncedAppends:
    """The appends that wait for a sync, in the order of the log; each is answered exactly once."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[_WaitingAppend] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, result: AppendResult, size_bytes: int) -> Deferred[AppendResult]:
        """Add an append; its Deferred fires when it is synced, or fails when it is refused."""
        append = _WaitingAppend(result, size_bytes, Deferred())
        self._waiting.append(append)
        return append.answer

    def take(self, end_offset: int) -> list[_WaitingAppend]:
        """Remove the appends before an offset and return them."""
        taken = []
        while self._waiting and self._waiting[0].result.end.offset <= end_offset:
            taken.append(self._waiting.popleft())
        return taken

    def refuse(self, refusal: KafkaError) -> None:
        """Fail all appends."""
        waiting, self._waiting = self._waiting, deque()
        for append in waiting:
            append.answer.errback(refusal)
