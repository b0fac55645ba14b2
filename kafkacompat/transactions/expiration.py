"""What time does to transactional ids: an open transaction is aborted, an id that nobody uses is forgotten."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.shard import Shard
from kafkacompat.timers import Clock, in_turns, now_ms
from kafkacompat.transactions.producers import Producers
from kafkacompat.transactions.records import transaction_tombstone
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import BETWEEN_TRANSACTIONS, DEAD, ONGOING
from kafkacompat.transactions.transaction import Transaction
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

NO_TIMEOUT_MS = 0x7FFFFFFF
"""The timeout of transactions that another system decides (KIP-939)."""

TOMBSTONES_BYTES = 16 << 10
"""A batch of tombstones is full with so many bytes of keys: however long the ids are, the log takes it."""


class Expiration:
    """Looks through all transactional ids from time to time."""

    def __init__(
        self, clock: Clock, settings: TransactionSettings, registry: TransactionalIdRegistry, producers: Producers
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._producers = producers
        self._loops: list[LoopingCall] = []

    def start(self) -> None:
        """Begin; the first look is after one interval, and none begins before the last has ended."""
        self._repeat(self.abort_timed_out, self._settings.abort_timed_out_interval_ms)
        self._repeat(self.remove_expired, self._settings.remove_expired_interval_ms)

    def _repeat(self, action: Callable[[], Coroutine[Deferred[Any], Any, None]], interval_ms: int) -> None:
        loop = LoopingCall(lambda: Deferred.fromCoroutine(action()).addErrback(_failed))
        loop.clock = self._clock  # type: ignore[assignment]  # it fits IReactorTime
        loop.start(interval_ms / 1000, now=False)
        self._loops.append(loop)

    def stop(self) -> None:
        """End."""
        for loop in self._loops:
            if loop.running:
                loop.stop()
        self._loops.clear()

    async def abort_timed_out(self) -> None:
        """Abort what is open for longer than its client said; nothing is waited for."""
        at_ms = now_ms(self._clock)
        async for each in in_turns(self._clock, list(self._registry.by_id.values())):
            if not each.is_busy and _is_overdue(each.current, at_ms):
                log.info(
                    "the transaction of %s is aborted: it is open for longer than %d ms",
                    each.name,
                    each.current.timeout_ms,
                )
                Deferred.fromCoroutine(self._producers.abort(each)).addErrback(_failed)

    async def remove_expired(self) -> None:
        """Forget what was not used for transactional.id.expiration.ms."""
        before_ms = now_ms(self._clock) - self._settings.transactional_id_expiration_ms
        expired: defaultdict[Shard, _Expired] = defaultdict(_Expired)
        async for each in in_turns(self._clock, list(self._registry.by_id.values())):
            if self._is_unused(each, before_ms):
                each.pending = DEAD
                expired[each.shard].add(each)
                if expired[each.shard].is_full:
                    self._forget(each.shard, expired.pop(each.shard))
        for shard, some in expired.items():
            self._forget(shard, some)

    def _is_unused(self, each: TransactionalId, before_ms: int) -> bool:
        current = each.current
        is_over = current.state in BETWEEN_TRANSACTIONS and not each.is_busy
        return is_over and current.last_update_ms <= before_ms and self._registry.is_current(each)

    def _forget(self, shard: Shard, expired: _Expired) -> None:
        if shard.is_active:
            log.info("%d transactional ids are forgotten: nobody has used them for long", len(expired.ids))
            shard.writer.write(expired.tombstones, lambda outcome: self._forgotten(expired.ids, outcome))

    def _forgotten(self, expired: Iterable[TransactionalId], outcome: ErrorCode) -> None:
        for each in expired:
            if outcome:
                each.settle()
            else:
                self._registry.forget(each)


class _Expired:
    """Transactional ids that go, and the records that say so, which go into one batch."""

    def __init__(self) -> None:
        self.ids: list[TransactionalId] = []
        self.tombstones: list[Record] = []
        self._size_bytes = 0

    def add(self, each: TransactionalId) -> None:
        tombstone = transaction_tombstone(each.name)
        self.ids.append(each)
        self.tombstones.append(tombstone)
        self._size_bytes += len(tombstone[0])

    @property
    def is_full(self) -> bool:
        return self._size_bytes >= TOMBSTONES_BYTES


def _is_overdue(transaction: Transaction, at_ms: int) -> bool:
    is_open = transaction.state is ONGOING and transaction.timeout_ms != NO_TIMEOUT_MS
    return is_open and transaction.start_ms + transaction.timeout_ms < at_ms


def _failed(failure: Failure) -> None:
    log.error("looking through the transactional ids failed", exc_info=failure.value)
