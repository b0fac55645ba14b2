"""What a read of one partition gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.storage.segment.transaction_index import AbortedTransaction


class PartitionRead(NamedTuple):
    """What a fetch found in one partition.

    ``region`` is a piece of the log's file, or what it was converted to for an old client.
    ``aborted`` are the transactions, of those that *region* may hold records of, that were aborted; for readers of committed
    records only.
    ``diverging_epoch`` is (epoch, end offset) when the fetcher's log and ours part ways (KIP-320).
    """

    region: FileRegion | bytes | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None = None
    aborted: Sequence[AbortedTransaction] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of record batches found."""
        if self.region is None:
            return 0
        return len(self.region) if isinstance(self.region, bytes) else self.region.size_bytes
