"""The records that a reader of committed records gets from a partition, and those that it should get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.producers.transaction_replay import ABORT, read_marker_type
from kafkacompat.wire.record_batch import read_header, split_batches
from tests.crash.model import Batch


def read_committed(partition: Partition) -> Iterator[int]:
    """The offsets of the batches that a consumer keeps; it fetches one at a time."""
    log, end = partition.log, partition.high_watermark
    offset = log.log_start_offset
    while (read := log.read_committed(offset, 1, end)).region is not None:
        for data in split_batches(read.region.pread(0, read.region.size_bytes)):
            header = read_header(data)
            aborted = [
                transaction
                for transaction in read.aborted
                if transaction.producer_id == header.producer_id and transaction.first_offset <= header.last_offset
            ]
            if not header.is_control and not (header.is_transactional and aborted):
                yield header.base_offset
            offset = header.last_offset + 1
        read.region.release()


class Fates:
    """The outcomes of the transactions of *sent*, in a log that begins at *start*."""

    def __init__(self, sent: Sequence[Batch], start: int) -> None:
        self._start = start
        self._open: dict[int, list[Batch]] = {}
        self.aborted: set[int] = set()
        """The offsets of batches that are not to be seen."""
        for batch in sent:
            header = batch.header
            if header.is_control:
                ended = self._open.pop(header.producer_id, [])
                if read_marker_type(batch.records()) == ABORT:
                    self.aborted.update(ended_batch.base_offset for ended_batch in ended)
            elif header.is_transactional:
                self._open.setdefault(header.producer_id, []).append(batch)

    def stable_offsets(self, end: int) -> tuple[int, int]:
        """Return the bounds of the stable offset of a log that ends at *end*; deleted transactions may count or not."""
        known = [max(batches[0].base_offset, self._start) for batches in self._open.values()]
        left = [
            batch.base_offset
            for batches in self._open.values()
            for batch in batches
            if batch.last_offset >= self._start
        ]
        return min([end, *known]), max(self._start, min([end, *left]))
