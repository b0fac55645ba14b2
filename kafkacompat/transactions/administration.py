"""DescribeTransactions and ListTransactions (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafkacompat.timers import Clock, now_ms, yield_in_turns
from kafkacompat.transactions.records import group_by_topic
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.state import DEAD, NAMES, TransactionState
from kafkacompat.wire.apis import describe_transactions, list_transactions
from kafkacompat.wire.errors import ErrorCode

NO_DURATION = -1

Listed: TypeAlias = "Sequence[list_transactions.TransactionState]"


@dataclass(frozen=True, slots=True)
class TransactionFilters:
    """The filters of ListTransactions. A transactional id has to match all of them; a filter that is not set matches all ids."""

    states: Collection[TransactionState] | None = None
    producer_ids: Collection[int] = ()
    duration_ms: int = NO_DURATION
    matches_name: Callable[[str], bool] | None = None

    def matches(self, transactional_id: TransactionalId, at_ms: int) -> bool:
        """Return whether a transactional id matches at the time *at_ms*."""
        current = transactional_id.current
        return (
            transactional_id.pending is not DEAD
            and (self.states is None or current.state in self.states)
            and (not self.producer_ids or current.producer_id in self.producer_ids)
            and (self.duration_ms < 0 or at_ms - current.start_ms > self.duration_ms)
            and (self.matches_name is None or self.matches_name(transactional_id.name))
        )


class TransactionAdministration:
    """Describes and lists transactional ids."""

    def __init__(self, clock: Clock, registry: TransactionalIdRegistry) -> None:
        self._clock = clock
        self._registry = registry

    def describe(self, name: str) -> describe_transactions.TransactionState:
        """Describe one transactional id; an unknown id has the code TRANSACTIONAL_ID_NOT_FOUND."""
        described = describe_transactions.TransactionState(transactional_id=name)
        transactional_id = self._registry.find(name) if name else ErrorCode.INVALID_REQUEST
        if isinstance(transactional_id, ErrorCode):
            described.error_code = transactional_id or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            return described
        current = transactional_id.current
        described.transaction_state = NAMES[current.state]
        described.transaction_timeout_ms = current.timeout_ms
        described.transaction_start_time_ms = current.start_ms
        described.producer_id, described.producer_epoch = current.producer
        described.topics = [
            describe_transactions.TopicData(topic=part.topic, partitions=part.partition_ids)
            for part in group_by_topic(current.partitions)
        ]
        return described

    async def list(self, filters: TransactionFilters) -> ErrorCode | Listed:
        """Return the transactional ids that match the filters, or the error for the client."""
        if self._registry.is_stopped:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if any(shard.is_loading for shard in self._registry.shards.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        at_ms = now_ms(self._clock)
        listed = []
        async for transactional_id in yield_in_turns(self._clock, list(self._registry.by_id.values())):
            if filters.matches(transactional_id, at_ms):
                listed.append(_as_listed(transactional_id))
        return listed


def _as_listed(transactional_id: TransactionalId) -> list_transactions.TransactionState:
    return list_transactions.TransactionState(
        transactional_id=transactional_id.name,
        producer_id=transactional_id.current.producer_id,
        transaction_state=NAMES[transactional_id.current.state],
    )
