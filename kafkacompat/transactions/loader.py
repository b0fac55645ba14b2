"""Rebuilds the transactional ids of one partition of the transactions topic from its records, on election."""

from __future__ import annotations

from kafkacompat.coordination.replay import Replay
from kafkacompat.coordination.shard import Shard
from kafkacompat.transactions.records import read_key, read_transaction
from kafkacompat.transactions.registry import TransactionalId
from kafkacompat.transactions.state import COMPLETION
from kafkacompat.transactions.transaction import Transaction
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, Record


class Loader(Replay):
    """Replays one partition; ``ids`` is what its records amount to, ``decided`` those of them that are to be completed.

    All that has to be known of a great many is counted while they are read, a piece of work at a time.
    """

    def __init__(self, shard: Shard) -> None:
        super().__init__(shard)
        self.ids: dict[str, TransactionalId] = {}
        self.decided: dict[str, TransactionalId] = {}
        self.size_bytes = 0

    def _finish(self) -> str:
        return f"{len(self.ids)} transactional ids"

    def discard(self) -> None:
        """Forget it all."""
        self.ids.clear()
        self.decided.clear()

    def _replay_record(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            return
        try:
            name = read_key(record.key or b"")
            if name is None:
                self._skipped["unknown version of the key"] += 1
            else:
                found = None if record.value is None else read_transaction(record.value)
                self._take(name, found)
        except MalformedError as problem:
            self._skipped[str(problem)] += 1

    def _take(self, name: str, transaction: Transaction | None) -> None:
        self.decided.pop(name, None)
        earlier = self.ids.pop(name, None)
        if earlier is not None:
            self.size_bytes -= earlier.size_bytes
        if transaction is None:
            return
        self.ids[name] = found = TransactionalId(name, self._shard, transaction)
        self.size_bytes += found.size_bytes
        if transaction.state in COMPLETION:
            found.pending = COMPLETION[transaction.state]
            self.decided[name] = found
