"""Reading one partition of a coordinator's topic to its end: what the loaders of all coordinators share."""

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
    """Reads the partition of a shard into itself; ``_skipped`` counts the records that are left out, by the reason."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._skipped: Counter[str] = Counter()

    def replay(self, coordinator_log: CoordinatorLog) -> Iterator[None]:
        """Read the partition to its end, with a pause (a yield) before each piece of work.

        An empty partition takes no pause, and the reading ends early when the shard is no longer ours. Raises
        MalformedError for a batch that cannot be read; a record that cannot is left out.
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
        found = self._finish()
        if count:
            log.info("%s: %d records, %s", name, count, found)
        for reason, records in self._skipped.items():
            log.warning("%s: %d records left out: %s", name, records, reason)

    @abstractmethod
    def _replay_record(self, header: BatchHeader, record: Record) -> None:
        """Take a record of a batch with that header in, a marker too."""

    @abstractmethod
    def _finish(self) -> str:
        """All records are in; return what they amount to, in words."""

    @abstractmethod
    def discard(self) -> None:
        """Give back what it holds, for it is not wanted after all."""
