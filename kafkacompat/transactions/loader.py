"""Rebuilds the transactional ids of one partition of the transactions topic from its records, on election."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

from kafkacompat.groups.coordinator_log import CoordinatorLog
from kafkacompat.groups.shard import Shard
from kafkacompat.transactions.records import read_key, read_transaction
from kafkacompat.transactions.registry import TransactionalId
from kafkacompat.transactions.state import COMPLETION
from kafkacompat.transactions.transaction import Transaction
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import Record, read_header, read_records

log = logging.getLogger(__name__)

RECORDS_A_TURN = 500


class Loader:
    """Replays one partition; ``ids`` is what its records amount to, ``decided`` those of them that are to be completed.

    All that has to be known of a great many is counted while they are read, a piece of work at a time.
    """

    def __init__(self, shard: Shard) -> None:
        self.ids: dict[str, TransactionalId] = {}
        self.decided: dict[str, TransactionalId] = {}
        self.size_bytes = 0
        self._shard = shard
        self._skipped: Counter[str] = Counter()

    def replay(self, coordinator_log: CoordinatorLog) -> Iterator[None]:
        """Read the partition to its end, with a pause (a yield) before each piece of work.

        An empty partition takes no pause, and the reading ends early when the shard is no longer ours. Raises
        MalformedError for a batch that cannot be read; a record that cannot is left out.
        """
        count = 0
        for batch in coordinator_log.read(self._shard.partition):
            if read_header(batch).is_control:
                continue
            for record in read_records(batch):
                if count % RECORDS_A_TURN == 0:
                    yield
                    if not self._shard.is_active:
                        return
                count += 1
                self._replay_record(record)
        name = f"{coordinator_log.topic}-{self._shard.partition}"
        if count:
            log.info("%s: %d records, %d transactional ids", name, count, len(self.ids))
        for reason, records in self._skipped.items():
            log.warning("%s: %d records left out: %s", name, records, reason)

    def discard(self) -> None:
        """Forget it all."""
        self.ids.clear()
        self.decided.clear()

    def _replay_record(self, record: Record) -> None:
        try:
            name = read_key(record.key or b"")
            if name is None:
                self._skipped["their keys are of a version that is not known here"] += 1
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
