"""Builds one response from several parts that may be ready later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from twisted.internet.defer import Deferred, gatherResults, succeed

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.schema import Response

_Part = TypeVar("_Part")
_ResponseType = TypeVar("_ResponseType", bound=Response)


def answer_when_ready(
    parts: Sequence[_Part | Deferred[_Part]], build: Callable[[list[_Part]], _ResponseType]
) -> _ResponseType | Pending[_ResponseType]:
    """Build the response at once if every part is ready, else when the last one is."""
    ready = [part for part in parts if not isinstance(part, Deferred)]
    if len(ready) == len(parts):
        return build(ready)
    waiting = [part if isinstance(part, Deferred) else succeed(part) for part in parts]
    return Pending(gatherResults(waiting, consumeErrors=True).addCallback(build))
