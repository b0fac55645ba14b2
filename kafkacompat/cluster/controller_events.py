"""The events of one controller epoch, handled one at a time until another broker may be the controller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredLock

from kafkacompat.metadata.store import StoreError
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.zookeeper.client import ZooKeeperError
from kafkacompat.zookeeper.waiting import LOSSES

log = logging.getLogger(__name__)

REPEAT_S = 0.5
"""Pause before a request that ZooKeeper did not confirm is sent again."""

Result = TypeVar("Result")


class ControllerEvents:
    """Runs the work of events, each after the one before; ``lock`` is held by the one that runs.

    *on_doubt* is called when ZooKeeper did not make a change: another broker may be the controller.
    """

    def __init__(self, clock: Clock, on_doubt: Callable[[], object]) -> None:
        self.lock = DeferredLock()
        self.is_stopped = False
        self._clock = clock
        self._on_doubt = on_doubt

    def stop(self) -> None:
        """Run nothing more; work that waits fails with NOT_CONTROLLER."""
        self.is_stopped = True

    def run(self, work: Callable[[], Coroutine[Deferred[Any], Any, Result]]) -> Deferred[Result]:
        """Run work for a client or a broker, which gets its result, or KafkaError NOT_CONTROLLER after `stop`."""

        async def run() -> Result:
            if self.is_stopped:
                raise not_controller()
            return await work()

        return self.lock.run(lambda: Deferred.fromCoroutine(run()))

    def handle(self, work: Callable[[], Coroutine[Deferred[Any], Any, None]], subject: str) -> None:
        """Run work that nothing waits for; it is repeated while ZooKeeper does not confirm it."""

        def report(failure: Any) -> None:
            if self.is_stopped:
                return
            if _is_unconfirmed(failure.value):
                log.warning("The controller tries again to handle %s: %s", subject, failure.value)
                self._on_doubt()
                self._clock.callLater(REPEAT_S, self.handle, work, subject)
            else:
                log.error("The controller failed to handle %s", subject, exc_info=failure.value)

        self.run(work).addErrback(report)

    async def insist(self, request: Callable[[], Deferred[Result]]) -> Result:
        """Repeat a request to ZooKeeper until it is answered; raises KafkaError NOT_CONTROLLER after `stop`."""
        while not self.is_stopped:
            try:
                return await request()
            except LOSSES:
                pause: Deferred[None] = Deferred()
                self._clock.callLater(REPEAT_S, pause.callback, None)
                await pause
        raise not_controller()


def not_controller() -> KafkaError:
    """Build the error of a controller that has resigned."""
    return KafkaError(ErrorCode.NOT_CONTROLLER, "another broker has become the controller")


def _is_unconfirmed(problem: BaseException) -> bool:
    """Whether ZooKeeper did not confirm a change, or could not be read."""
    if isinstance(problem, KafkaError):
        return problem.code is ErrorCode.KAFKA_STORAGE_ERROR
    return isinstance(problem, StoreError | ZooKeeperError)
