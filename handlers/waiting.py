"""Waits for operations: for several whose parts make one response, and for those with a time limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.python.failure import Failure

from kafkacompat.handlers.context import Pending, Services
from kafkacompat.timers import DelayedCall
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Response

log = logging.getLogger(__name__)

_Part = TypeVar("_Part")
_ResponseType = TypeVar("_ResponseType", bound=Response)


async def wait_at_most(operation: Deferred[_Part], timeout_ms: int, services: Services) -> _Part:
    """Return an operation's result; raises KafkaError REQUEST_TIMED_OUT after the request's time, and the operation goes on.

    On a single node the time has no effect, as the operation waits for nobody.
    """
    if services.cluster is None:
        return await operation
    waiting: Deferred[_Part] = Deferred()
    deadline = services.clock.callLater(max(timeout_ms, 0) / 1000, _expire_wait, waiting)
    operation.addCallbacks(_end_wait, _fail_wait, callbackArgs=(waiting, deadline), errbackArgs=(waiting, deadline))
    return await waiting


def _expire_wait(waiting: Deferred[Any]) -> None:
    reason = "the brokers have not carried out the change in the request's time; it goes on"
    waiting.errback(KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason))


def _end_wait(result: _Part, waiting: Deferred[_Part], deadline: DelayedCall) -> None:
    if deadline.active():
        deadline.cancel()
        waiting.callback(result)


def _fail_wait(failure: Failure, waiting: Deferred[Any], deadline: DelayedCall) -> None:
    if deadline.active():
        deadline.cancel()
        waiting.errback(failure)
    elif not failure.check(KafkaError):
        log.error("a change failed after its request's time", exc_info=failure.value)


def answer_when_ready(
    parts: Sequence[_Part | Deferred[_Part]], build: Callable[[list[_Part]], _ResponseType]
) -> _ResponseType | Pending[_ResponseType]:
    """Build the response at once if every part is ready, else when the last one is."""
    ready = [part for part in parts if not isinstance(part, Deferred)]
    if len(ready) == len(parts):
        return build(ready)
    waiting = [part if isinstance(part, Deferred) else succeed(part) for part in parts]
    return Pending(gatherResults(waiting, consumeErrors=True).addCallback(build))
