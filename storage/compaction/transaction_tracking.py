"""TransactionTracker in a compaction: aborted records go, and markers stay until their transactions have no records (KIP-98)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kafkacompat.storage.producers.transaction_replay import ABORT, COMMIT, read_marker_type
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader


class TransactionTracker:
    """Follows the transactions of a log, none of which is open, batch by batch.

    `aborted` are the aborted transactions that end after the first batch.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborting: dict[int, AbortedTransaction] = {}
        self._with_batches: set[int] = set()
        self._committing: set[int] = set()
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Follow a batch of records; return whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        self._begin_until(header.last_offset)
        aborted = header.producer_id in self._aborting
        (self._with_batches if aborted else self._committing).add(header.producer_id)
        return aborted

    def is_marker_without_batches(self, header: BatchHeader, batch: Buffer) -> bool:
        """Follow a control batch; return whether its transaction had no batch left."""
        self._begin_until(header.last_offset)
        kind, producer_id = read_marker_type(batch), header.producer_id
        if kind == COMMIT:
            had_batches = producer_id in self._committing
            self._committing.discard(producer_id)
            return not had_batches
        if kind == ABORT:
            transaction = self._aborting.pop(producer_id, None)
            had_batches = producer_id in self._with_batches
            self._with_batches.discard(producer_id)
            if had_batches and transaction is not None:
                self._kept.append(transaction)
            return not had_batches
        return kind is None

    def take_kept(self) -> list[AbortedTransaction]:
        """Return the aborted transactions since the last call that still have batches, for the transaction index."""
        kept, self._kept = self._kept, []
        return kept

    def _begin_until(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            transaction = self._to_come.popleft()
            self._aborting.setdefault(transaction.producer_id, transaction)
