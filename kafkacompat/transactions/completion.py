"""Completing decided transactions: every partition gets its marker, then the log gets the completion.

A marker that cannot be written is retried without a time limit. Without it, consumers would read aborted records, or would never
read past the transaction. Only a deleted partition needs no marker.

A partition that has seen a marker of a later coordinator epoch refuses the marker (TRANSACTION_COORDINATOR_FENCED): another broker
completes the transaction. Until this broker resigns it goes on trying, as it may lead in a later epoch itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.changes import TransactionWriter
from kafkacompat.transactions.markers import MarkerCodes
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import COMPLETION, PREPARE_COMMIT
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class MarkerTransport(Protocol):
    """Brings markers to partitions: `MarkerWriter` to those of this broker, `MarkerSender` to those of any broker."""

    def send(self, marker: Marker, partitions: Collection[TopicPartition]) -> Sequence[Deferred[MarkerCodes]]:
        """Try once to write a marker to each partition.

        Each Deferred fires with the codes of some of the partitions, as soon as their broker has answered, and never fails.
        """
        ...


class Completion:
    """Completes decided transactions. Implements `Completer`.

    ``is_deleted`` fires with True only if the committed metadata does not have the partition. It is asked where a partition is
    unknown to the broker that should have it, which may only not have learned of it yet.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        registry: TransactionalIdRegistry,
        markers: MarkerTransport,
        is_deleted: Callable[[str, int], Deferred[bool]],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._markers = markers
        self._is_deleted = is_deleted
        self.changes = TransactionWriter(registry, settings.log_value_version, self)

    def begin_completion(self, transactional_id: TransactionalId) -> None:
        """See Completer. Also called for decided transactions that were loaded from the log."""
        transactional_id.pending = COMPLETION[transactional_id.current.state]
        missing = set(transactional_id.current.partitions)
        if missing:
            backoff_ms = self._settings.marker_retry_backoff_ms
            self._send_markers(transactional_id, missing, transactional_id.current.partitions, backoff_ms)
        else:
            self._complete(transactional_id)

    def _send_markers(
        self,
        transactional_id: TransactionalId,
        missing: set[TopicPartition],
        partitions: Collection[TopicPartition],
        backoff_ms: int,
    ) -> None:
        """Send markers to some of the *missing* partitions. A broker that does not answer holds up its own partitions only."""
        if not transactional_id.shard.is_active:
            return
        for sent in self._markers.send(_as_marker(transactional_id), partitions):
            judged = sent.addCallback(
                lambda codes: Deferred.fromCoroutine(self._on_sent(transactional_id, missing, codes, backoff_ms))
            )
            judged.addErrback(lambda failure: log.error("Failed to complete a transaction", exc_info=failure.value))

    async def _on_sent(
        self, transactional_id: TransactionalId, missing: set[TopicPartition], codes: MarkerCodes, backoff_ms: int
    ) -> None:
        left = [
            partition
            for partition, code in codes.items()
            if not await self._needs_no_retry(transactional_id, partition, code)
        ]
        missing.difference_update(codes.keys() - left)
        if left and backoff_ms == self._settings.marker_retry_backoff_ms:
            reasons = sorted({ErrorCode(codes[partition]).name for partition in left})
            log.warning("Retrying %d markers of %s: %s", len(left), transactional_id.name, ", ".join(reasons))
        longer_ms = min(2 * backoff_ms, self._settings.marker_retry_backoff_max_ms)
        if left:
            self._clock.callLater(backoff_ms / 1000, self._send_markers, transactional_id, missing, left, longer_ms)
        elif not missing:
            self._complete(transactional_id)

    async def _needs_no_retry(
        self, transactional_id: TransactionalId, partition: TopicPartition, code: ErrorCode
    ) -> bool:
        if code is ErrorCode.INVALID_PRODUCER_EPOCH:
            # A producer with a newer epoch has written to the partition, so this transaction has ended there.
            log.warning("%s-%d has a newer producer epoch than the marker of %s", *partition, transactional_id.name)
            return True
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return not code
        try:
            return await self._is_deleted(*partition)
        except Exception as problem:
            log.warning("Cannot find out whether %s-%d is deleted: %s", *partition, problem)
            return False

    def _complete(self, transactional_id: TransactionalId) -> None:
        self.changes.write(transactional_id, transactional_id.current.as_completed(now_ms(self._clock)))

    def retry_completion(self, transactional_id: TransactionalId) -> None:
        """See Completer. The completion is retried without a time limit."""
        delay_s = self._settings.marker_retry_backoff_max_ms / 1000
        self._clock.callLater(delay_s, self._complete, transactional_id)


def _as_marker(transactional_id: TransactionalId) -> Marker:
    transaction = transactional_id.current
    return Marker(
        transaction.producer_id,
        transaction.producer_epoch,
        transactional_id.shard.leader_epoch,
        transaction.state is PREPARE_COMMIT,
        transaction.client_version,
    )
