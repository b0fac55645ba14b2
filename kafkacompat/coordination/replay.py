"""Reading one partition of a coordinator's topic to its end, as the loaders of all coordinators do."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.shard import Shard
from kafkacompat.wire.record_batch import BatchHeader, Record, read_header, read_records

log = logging.getLogger(__name__)

RECORDS_A_TURN = 500


class Replay(ABC):
    """Reads the partition of a shard into itself. ``_skipped`` counts the records that it leaves out, by reason."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._skipped: Counter[str] = Counter()

    def replay(self, coordinator_log: CoordinatorLog) -> Iterator[None]:
        """Read the partition to its end; yields before each `RECORDS_A_TURN` records.

        An empty partition yields nothing. Reading ends early if this broker resigns the shard. Raises MalformedError for a
        batch that cannot be read; a record that cannot be read is left out.
        """
        count = 0
        for batch in coordinator_log.read(self._shard.partition):
            header = read_header(batch)
            for record in read_records(batch):
                if count % RECORDS_A_TURN == 0:
                    yield
                    if not self._shard.is_active:
                        return
                count += 1
                self._replay_record(header, record)
        name = f"{coordinator_log.topic}-{self._shard.partition}"
        summary = self._finish()
        if count:
            log.info("%s: loaded %d records, %s", name, count, summary)
        for reason, records in self._skipped.items():
            log.warning("%s: left out %d records: %s", name, records, reason)

    @abstractmethod
    def _replay_record(self, header: BatchHeader, record: Record) -> None:
        """Apply one record of a batch with this header, also a transaction marker."""

    @abstractmethod
    def _finish(self) -> str:
        """End the reading; return in words what was loaded, for the log."""

    @abstractmethod
    def discard(self) -> None:
        """Release what was loaded: it is not needed."""
