"""Appends in line: while a log gets a new segment, or moves, nobody overtakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.storage.log import AppendResult
from kafkacompat.storage.transaction_marker import Marker
from kafkacompat.storage.validation import CheckedBatch
from kafkacompat.storage.verification import Guard
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.primitives import Buffer

Appended: TypeAlias = "AppendResult | Deferred[AppendResult]"


@dataclass(slots=True)
class HeldAppend:
    """An append in line."""

    what: Buffer | CheckedBatch | Marker
    now_ms: int
    from_client: bool
    guard: Guard | None
    result: Deferred[AppendResult] = field(default_factory=Deferred)


def settle(waiting: Deferred[AppendResult], outcome: Appended | KafkaError) -> None:
    """Tell who waits what became of the append."""
    if isinstance(outcome, KafkaError):
        waiting.errback(outcome)
    elif isinstance(outcome, Deferred):
        outcome.chainDeferred(waiting)
    else:
        waiting.callback(outcome)
