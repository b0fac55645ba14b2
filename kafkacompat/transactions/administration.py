"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafkacompat.patterns import Pattern
from kafkacompat.timers import Clock, in_turns, now_ms
from kafkacompat.transactions.records import by_topic
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.state import DEAD, NAMES, TransactionState
from kafkacompat.wire.apis import describe_transactions, list_transactions
from kafkacompat.wire.errors import ErrorCode

NO_DURATION = -1

Listed: TypeAlias = "Sequence[list_transactions.TransactionState]"


@dataclass(frozen=True, slots=True)
class Filters:
    """Which transactional ids are listed: those that all of these apply to; one that is not given applies to any."""

    states: Collection[TransactionState] | None = None
    producer_ids: Collection[int] = ()
    duration_ms: int = NO_DURATION
    pattern: Pattern | None = None

    def apply(self, each: TransactionalId, at_ms: int) -> bool:
        """Whether a transactional id is one of them."""
        current = each.current
        return (
            each.pending is not DEAD
            and (self.states is None or current.state in self.states)
            and (not self.producer_ids or current.producer_id in self.producer_ids)
            and (self.duration_ms < 0 or at_ms - current.start_ms > self.duration_ms)
            and (self.pattern is None or self.pattern.matches(each.name))
        )


class Administration:
    """Tells what there is."""

    def __init__(self, clock: Clock, registry: TransactionalIdRegistry) -> None:
        self._clock = clock
        self._registry = registry

    def describe(self, name: str) -> describe_transactions.TransactionState:
        """One transactional id; one that does not exist has the code TRANSACTIONAL_ID_NOT_FOUND."""
        described = describe_transactions.TransactionState(transactional_id=name)
        found = self._registry.find(name) if name else ErrorCode.INVALID_REQUEST
        if isinstance(found, ErrorCode):
            described.error_code = found or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return described
        current = found.current
        described.transaction_state = NAMES[current.state]
        described.transaction_timeout_ms = current.timeout_ms
        described.transaction_start_time_ms = current.start_ms
        described.producer_id, described.producer_epoch = current.producer
        described.topics = [
            describe_transactions.TopicData(topic=each.topic, partitions=each.partition_ids)
            for each in by_topic(current.partitions)
        ]
        return described

    async def list(self, filters: Filters) -> ErrorCode | Listed:
        """The transactional ids that the filters leave, or why they are not known."""
        if self._registry.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if any(shard.is_loading for shard in self._registry.shards.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        at_ms = now_ms(self._clock)
        found = []
        async for each in in_turns(self._clock, list(self._registry.by_id.values())):
            if filters.apply(each, at_ms):
                found.append(_listed(each))
        return found


def _listed(each: TransactionalId) -> list_transactions.TransactionState:
    return list_transactions.TransactionState(
        transactional_id=each.name,
        producer_id=each.current.producer_id,
        transaction_state=NAMES[each.current.state],
    )
