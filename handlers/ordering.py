"""Answers whose effects the connection's next request must see."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending
from kafkacompat.wire.schema import Response

ResponseType = TypeVar("ResponseType", bound=Response)


def answer_in_order(answering: Coroutine[Deferred[Any], Any, ResponseType]) -> Pending[ResponseType]:
    """Hold the connection's next request until the answer is complete, as Kafka does for every request."""
    return Pending(Deferred.fromCoroutine(answering), in_order=True)
