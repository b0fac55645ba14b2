"""Producer ids, which no two producers of a cluster may share: allocated from blocks of 1000."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kafkacompat.wire.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000

PASSING_ERRORS = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
    }
)
"""The cluster has no controller at the moment, or the controller does not know this broker yet."""


class ProducerIds:
    """Allocates ids; ``allocate`` fires with a block that no other broker gets."""

    def __init__(self, allocate: Callable[[], Deferred[range]]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))
        self._waiting: deque[Deferred[int]] = deque()
        self._allocating = False

    def next(self) -> Deferred[int]:
        """Fire with an id that was never allocated before.

        Fails when ``allocate`` does; with KafkaError COORDINATOR_LOAD_IN_PROGRESS while the controller cannot be reached. After
        this code producers of all releases try again, and that allocates again.
        """
        if not self._waiting:
            producer_id = next(self._block, None)
            if producer_id is not None:
                return succeed(producer_id)
        waiter: Deferred[int] = Deferred()
        self._waiting.append(waiter)
        if not self._allocating:
            self._allocating = True
            self._allocate().addCallbacks(self._serve_waiting, self._fail_waiting)
        return waiter

    def _serve_waiting(self, block: range) -> None:
        self._allocating = False
        self._block = iter(block)
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            self._serve(waiter)

    def _serve(self, waiter: Deferred[int]) -> None:
        self.next().addCallbacks(waiter.callback, waiter.errback)

    def _fail_waiting(self, failure: Failure) -> None:
        self._allocating = False
        waiting, self._waiting = self._waiting, deque()
        problem = failure.value
        if isinstance(problem, KafkaError) and problem.code in PASSING_ERRORS:
            failure = Failure(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids: {problem}"))
        for waiter in waiting:
            waiter.errback(failure)
