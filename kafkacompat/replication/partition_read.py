"""What a read of one partition gives."""

from __future__ import annotations

from dataclasses import dataclass

from kafkacompat.storage.segment_file import FileRegion


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """What a fetch found in one partition.

    ``region`` is a piece of the log's file, or what it was converted to for an old client.
    ``diverging_epoch`` is (epoch, end offset) when the fetcher's log and ours part ways (KIP-320).
    """

    region: FileRegion | bytes | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: tuple[int, int] | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of record batches found."""
        if self.region is None:
            return 0
        return len(self.region) if isinstance(self.region, bytes) else self.region.size_bytes
