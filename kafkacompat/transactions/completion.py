"""From the decision how a transaction ends to the moment when every partition knows.

A partition that cannot take its marker now is tried again, for as long as it takes: dropping the marker would show
aborted records, or hold back the readers of the partition for ever. Only a partition that was deleted needs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.changes import Changes
from kafkacompat.transactions.markers import MarkerCodes, MarkerWriter
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import COMPLETION, PREPARE_COMMIT
from kafkacompat.transactions.transaction import TopicPartition
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class Completion:
    """``is_deleted`` is certain of a partition's absence: not to have heard of it yet is not enough."""

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
        self.changes = Changes(registry, settings.log_value_version, self)

    def begin(self, transactional_id: TransactionalId) -> None:
        """See Completer; also where a decided transaction was found in the log."""
        transactional_id.pending = COMPLETION[transactional_id.current.state]
        self._mark(transactional_id, transactional_id.current.partitions, self._settings.marker_retry_backoff_ms)

    def _mark(self, transactional_id: TransactionalId, partitions: Collection[TopicPartition], backoff_ms: int) -> None:
        if not transactional_id.shard.is_active:
            return
        written = self._markers.write(_marker(transactional_id), partitions)
        written.addCallback(lambda codes: self._marked(transactional_id, codes, backoff_ms))
        written.addErrback(lambda failure: log.error("a transaction is not completed", exc_info=failure.value))

    def _marked(self, transactional_id: TransactionalId, codes: MarkerCodes, backoff_ms: int) -> None:
        left = [partition for partition, code in codes.items() if not self._is_done(transactional_id, partition, code)]
        if left and backoff_ms == self._settings.marker_retry_backoff_ms:
            reasons = sorted({ErrorCode(codes[partition]).name for partition in left})
            log.warning("%d markers of %s wait: %s", len(left), transactional_id.name, ", ".join(reasons))
        longer_ms = min(2 * backoff_ms, self._settings.marker_retry_backoff_max_ms)
        if left:
            self._clock.callLater(backoff_ms / 1000, self._mark, transactional_id, left, longer_ms)
        else:
            self._complete(transactional_id)

    def _is_done(self, transactional_id: TransactionalId, partition: TopicPartition, code: ErrorCode) -> bool:
        if code is ErrorCode.INVALID_PRODUCER_EPOCH:
            # A newer epoch has written there, so what this marker would end has ended.
            log.warning("%s-%d has a newer epoch than the marker of %s", *partition, transactional_id.name)
            return True
        return not code or self._is_deleted(*partition)

    def _complete(self, transactional_id: TransactionalId) -> None:
        self.changes.write(transactional_id, transactional_id.current.completed(now_ms(self._clock)))

    def refused(self, transactional_id: TransactionalId) -> None:
        """See Completer: it is written again, for as long as it takes."""
        delay_s = self._settings.marker_retry_backoff_max_ms / 1000
        self._clock.callLater(delay_s, self._complete, transactional_id)


def _marker(transactional_id: TransactionalId) -> Marker:
    transaction = transactional_id.current
    return Marker(
        transaction.producer_id,
        transaction.producer_epoch,
        transactional_id.shard.leader_epoch,
        transaction.state is PREPARE_COMMIT,
        transaction.client_version,
    )
