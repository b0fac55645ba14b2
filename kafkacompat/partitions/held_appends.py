"""Appends in line: while a log gets a new segment, or moves, nobody overtakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from twisted.internet.defer import Deferred

from kafkacompat.storage.intake.validation import CheckedBatch
from kafkacompat.storage.log.log import AppendResult, Log
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import Guard
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


def note_refused(log: Log, what: Buffer | CheckedBatch | Marker) -> None:
    """What is refused because the disk cannot take it now comes again: a producer that is not known has to begin with it.

    Of a transaction's batch that is known already, since its coordinator was asked about it.
    """
    if isinstance(what, CheckedBatch) and not what.header.is_transactional:
        header, state = what.header, log.producer_state
        if header.producer_id >= 0 and header.producer_id not in state.producers.packed:
            state.verifications.begin(header.producer_id, header.producer_epoch, header.base_sequence, False)


def settle(waiting: Deferred[AppendResult], outcome: Appended | KafkaError) -> None:
    """Tell who waits what became of the append."""
    if isinstance(outcome, KafkaError):
        waiting.errback(outcome)
    elif isinstance(outcome, Deferred):
        outcome.chainDeferred(waiting)
    else:
        waiting.callback(outcome)
