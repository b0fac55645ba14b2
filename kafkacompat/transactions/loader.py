"""Rebuilding the transactional ids of one partition of the topic from its records, when this broker is elected its leader."""

from __future__ import annotations

from kafkacompat.coordination.replay import Replay
from kafkacompat.coordination.shard import Shard
from kafkacompat.transactions.records import read_transaction, read_transactional_id
from kafkacompat.transactions.registry import TransactionalId
from kafkacompat.transactions.state import COMPLETION
from kafkacompat.transactions.transaction import TransactionMetadata
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, Record


class TransactionLoader(Replay):
    """Replays one partition. The results are its ``ids``, those of them that are ``decided`` and not complete, and their size.

    ``size_bytes`` and ``decided`` are kept up to date record by record, so that no turn of the reactor has to go through all ids.
    """

    def __init__(self, shard: Shard) -> None:
        super().__init__(shard)
        self.ids: dict[str, TransactionalId] = {}
        self.decided: dict[str, TransactionalId] = {}
        self.size_bytes = 0

    def _finish(self) -> str:
        return f"{len(self.ids)} transactional ids"

    def discard(self) -> None:
        """Forget all ids."""
        self.ids.clear()
        self.decided.clear()

    def _replay_record(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            return
        try:
            name = read_transactional_id(record.key or b"")
            if name is None:
                self._skipped["unknown version of the key"] += 1
            else:
                transaction = None if record.value is None else read_transaction(record.value)
                self._replace(name, transaction)
        except MalformedError as problem:
            self._skipped[str(problem)] += 1

    def _replace(self, name: str, transaction: TransactionMetadata | None) -> None:
        self.decided.pop(name, None)
        earlier = self.ids.pop(name, None)
        if earlier is not None:
            self.size_bytes -= earlier.size_bytes
        if transaction is None:
            return
        self.ids[name] = transactional_id = TransactionalId(name, self._shard, transaction)
        self.size_bytes += transactional_id.size_bytes
        if transaction.state in COMPLETION:
            transactional_id.pending = COMPLETION[transaction.state]
            self.decided[name] = transactional_id
