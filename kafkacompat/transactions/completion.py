"""Completing decided transactions: every partition gets its marker, then the log gets the completion.

A marker that cannot be written is retried without a time limit. Without it, consumers would read aborted records, or would never
read past the transaction. Only a deleted partition needs no marker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.changes import TransactionWriter
from kafkacompat.transactions.markers import MarkerCodes, MarkerWriter
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import COMPLETION, PREPARE_COMMIT
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class Completion:
    """Completes decided transactions. Implements `Completer`.

    ``is_deleted`` returns True only if the committed metadata does not have the partition.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        registry: TransactionalIdRegistry,
        markers: MarkerWriter,
        is_deleted: Callable[[str, int], bool],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._markers = markers
        self._is_deleted = is_deleted
        self.changes = TransactionWriter(registry, settings.log_value_version, self)

    def begin_completion(self, transactional_id: TransactionalId) -> None:
        """See Completer. Also called for decided transactions that were loaded from the log."""
        transactional_id.pending = COMPLETION[transactional_id.current.state]
        self._write_markers(
            transactional_id, transactional_id.current.partitions, self._settings.marker_retry_backoff_ms
        )

    def _write_markers(
        self, transactional_id: TransactionalId, partitions: Collection[TopicPartition], backoff_ms: int
    ) -> None:
        if not transactional_id.shard.is_active:
            return
        written = self._markers.write(_as_marker(transactional_id), partitions)
        written.addCallback(lambda codes: self._on_written(transactional_id, codes, backoff_ms))
        written.addErrback(lambda failure: log.error("Failed to complete a transaction", exc_info=failure.value))

    def _on_written(self, transactional_id: TransactionalId, codes: MarkerCodes, backoff_ms: int) -> None:
        left = [
            partition
            for partition, code in codes.items()
            if not self._needs_no_retry(transactional_id, partition, code)
        ]
        if left and backoff_ms == self._settings.marker_retry_backoff_ms:
            reasons = sorted({ErrorCode(codes[partition]).name for partition in left})
            log.warning("Retrying %d markers of %s: %s", len(left), transactional_id.name, ", ".join(reasons))
        longer_ms = min(2 * backoff_ms, self._settings.marker_retry_backoff_max_ms)
        if left:
            self._clock.callLater(backoff_ms / 1000, self._write_markers, transactional_id, left, longer_ms)
        else:
            self._complete(transactional_id)

    def _needs_no_retry(self, transactional_id: TransactionalId, partition: TopicPartition, code: ErrorCode) -> bool:
        if code is ErrorCode.INVALID_PRODUCER_EPOCH:
            # A producer with a newer epoch has written to the partition, so this transaction has ended there.
            log.warning("%s-%d has a newer producer epoch than the marker of %s", *partition, transactional_id.name)
            return True
        return not code or self._is_deleted(*partition)

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
