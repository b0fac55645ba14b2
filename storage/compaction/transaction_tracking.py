"""What becomes of transactions in a compaction: aborted records go, markers stay until nothing of theirs is left (KIP-98)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kafkacompat.storage.producers.transaction_replay import ABORT, COMMIT, marker_type
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader


class Transactions:
    """Follows the transactions of a log while its batches are looked at in order, all of them decided.

    ``aborted`` are those of the log; only those that reach beyond where the looking begins.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda each: each.first_offset))
        self._aborting: dict[int, AbortedTransaction] = {}
        self._with_batches: set[int] = set()
        self._committing: set[int] = set()
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Look at a batch of records: whether its transaction came to nothing."""
        if not header.is_transactional:
            return False
        self._begin_until(header.last_offset)
        aborted = header.producer_id in self._aborting
        (self._with_batches if aborted else self._committing).add(header.producer_id)
        return aborted

    def is_marker_of_nothing(self, header: BatchHeader, batch: Buffer) -> bool:
        """Look at a control batch: whether no batch of its transaction was there any more."""
        self._begin_until(header.last_offset)
        kind, producer_id = marker_type(batch), header.producer_id
        if kind == COMMIT:
            found = producer_id in self._committing
            self._committing.discard(producer_id)
            return not found
        if kind == ABORT:
            transaction = self._aborting.pop(producer_id, None)
            found = producer_id in self._with_batches
            self._with_batches.discard(producer_id)
            if found and transaction is not None:
                self._kept.append(transaction)
            return not found
        return kind is None

    def take_kept(self) -> list[AbortedTransaction]:
        """The aborted transactions that consumers still have to know of, since the last time."""
        kept, self._kept = self._kept, []
        return kept

    def _begin_until(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            transaction = self._to_come.popleft()
            self._aborting.setdefault(transaction.producer_id, transaction)
