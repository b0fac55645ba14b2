"""Aborting transactions that are open for too long, and forgetting unused transactional ids."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.shard import Shard
from kafkacompat.timers import Clock, PeriodicCall, now_ms, yield_in_turns
from kafkacompat.transactions.producers import TransactionalProducers
from kafkacompat.transactions.records import transaction_tombstone
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import BETWEEN_TRANSACTIONS, DEAD, ONGOING
from kafkacompat.transactions.transaction import TransactionMetadata
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

NO_TIMEOUT_MS = 0x7FFFFFFF
"""The timeout of two-phase commit transactions, which another system decides (KIP-939)."""

TOMBSTONES_BYTES = 16 << 10
"""Bytes of keys that fill a batch of tombstones, so that the log accepts a batch of long ids, too."""


class TransactionExpiration:
    """Checks all transactional ids regularly."""

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        registry: TransactionalIdRegistry,
        producers: TransactionalProducers,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._producers = producers
        self._loops: list[PeriodicCall] = []

    def start(self) -> None:
        """Start. The first check comes after one interval; no check starts before the one before has ended."""
        self._repeat(self.abort_timed_out, self._settings.abort_timed_out_interval_ms)
        self._repeat(self.remove_expired, self._settings.remove_expired_interval_ms)

    def _repeat(self, action: Callable[[], Coroutine[Deferred[Any], Any, None]], interval_ms: int) -> None:
        loop = PeriodicCall(self._clock, lambda: Deferred.fromCoroutine(action()).addErrback(_log_failure))
        loop.start(interval_ms / 1000, now=False)
        self._loops.append(loop)

    def stop(self) -> None:
        """Stop."""
        for loop in self._loops:
            if loop.running:
                loop.stop()
        self._loops.clear()

    async def abort_timed_out(self) -> None:
        """Abort the transactions that are open for longer than their timeout, without waiting for the result."""
        at_ms = now_ms(self._clock)
        async for transactional_id in yield_in_turns(self._clock, list(self._registry.by_id.values())):
            if not transactional_id.is_busy and _is_overdue(transactional_id.current, at_ms):
                log.info(
                    "Aborting the transaction of %s: it is open for longer than %d ms",
                    transactional_id.name,
                    transactional_id.current.timeout_ms,
                )
                Deferred.fromCoroutine(self._producers.abort(transactional_id)).addErrback(_log_failure)

    async def remove_expired(self) -> None:
        """Forget the ids that were not used for transactional.id.expiration.ms."""
        before_ms = now_ms(self._clock) - self._settings.transactional_id_expiration_ms
        expired: defaultdict[Shard, _ExpiredIds] = defaultdict(_ExpiredIds)
        async for transactional_id in yield_in_turns(self._clock, list(self._registry.by_id.values())):
            if self._is_unused(transactional_id, before_ms):
                transactional_id.pending = DEAD
                shard = transactional_id.shard
                expired[shard].add(transactional_id)
                if expired[shard].is_full:
                    self._forget(shard, expired.pop(shard))
        for shard, batch in expired.items():
            self._forget(shard, batch)

    def _is_unused(self, transactional_id: TransactionalId, before_ms: int) -> bool:
        current = transactional_id.current
        is_idle = current.state in BETWEEN_TRANSACTIONS and not transactional_id.is_busy
        return is_idle and current.last_update_ms <= before_ms and self._registry.is_current(transactional_id)

    def _forget(self, shard: Shard, expired: _ExpiredIds) -> None:
        if shard.is_active:
            log.info("Forgetting %d transactional ids: they have expired", len(expired.ids))
            shard.writer.write(expired.tombstones, lambda outcome: self._on_outcome(expired.ids, outcome))

    def _on_outcome(self, expired: Iterable[TransactionalId], outcome: ErrorCode) -> None:
        for transactional_id in expired:
            if outcome:
                transactional_id.settle()
            else:
                self._registry.forget(transactional_id)


class _ExpiredIds:
    """Transactional ids to forget, and their tombstones, which are one batch."""

    def __init__(self) -> None:
        self.ids: list[TransactionalId] = []
        self.tombstones: list[Record] = []
        self._size_bytes = 0

    def add(self, transactional_id: TransactionalId) -> None:
        tombstone = transaction_tombstone(transactional_id.name)
        self.ids.append(transactional_id)
        self.tombstones.append(tombstone)
        self._size_bytes += len(tombstone[0])

    @property
    def is_full(self) -> bool:
        return self._size_bytes >= TOMBSTONES_BYTES


def _is_overdue(transaction: TransactionMetadata, at_ms: int) -> bool:
    is_open = transaction.state is ONGOING and transaction.timeout_ms != NO_TIMEOUT_MS
    return is_open and transaction.start_ms + transaction.timeout_ms < at_ms


def _log_failure(failure: Failure) -> None:
    log.error("Failed to check the transactional ids", exc_info=failure.value)
