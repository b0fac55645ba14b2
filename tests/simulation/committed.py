"""What is committed: the batches below the highest high watermark that any replica had, and the comparison with logs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.storage.log.log import Log
from kafkacompat.wire.batch_header import read_header, split_batches


class SeenBatch(NamedTuple):
    """A batch of a log, by what tells it from others."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


def read_batches(opened: Log, start: int, end: int) -> Iterator[SeenBatch]:
    """Yield the batches of a log from the one that holds *start* up to *end*."""
    offset = max(start, opened.log_start_offset)
    while offset < min(end, opened.log_end_offset):
        region = opened.reader.read_for_follower(offset, 1 << 30)
        if region is None:
            return
        data = region.pread(0, region.size_bytes)
        region.release()
        before = offset
        for view in split_batches(data):
            header = read_header(view)
            if header.base_offset >= end:
                return
            offset = header.base_offset + header.last_offset_delta + 1
            yield SeenBatch(header.base_offset, offset - 1, header.partition_leader_epoch, header.crc)
        if offset == before:
            return


class CommittedLog:
    """The committed batches of one partition, from ``start`` to ``end``; ``leader_epoch`` is the latest of its readers."""

    def __init__(self) -> None:
        self.end = 0
        self._batches: list[SeenBatch] = []

    def compare(self, opened: Log, start: int, end: int) -> str | None:
        """Compare a log from *start* to *end*, below its high watermark; return what differs. What is new is committed now."""
        next_offset = None
        for batch in read_batches(opened, start, end):
            if next_offset is not None and batch.base_offset != next_offset:
                return f"offset {batch.base_offset} follows {next_offset - 1}"
            next_offset = batch.last_offset + 1
            if batch.base_offset >= self.end:
                if batch.base_offset > self.end and self._batches:
                    return f"offset {batch.base_offset} follows {self.end - 1}, the last committed one"
                self._batches.append(batch)
                self.end = next_offset
                continue
            known = self._find(batch.base_offset)
            if known is not None and batch != known:
                return f"it has {batch}, but {known} is committed"
        if next_offset is None and start < end and max(start, opened.log_start_offset) < end:
            return f"it lacks the offsets {start} to {end}"
        return None

    def _find(self, base_offset: int) -> SeenBatch | None:
        """The batch that holds an offset; None before the first one."""
        place = bisect_left(self._batches, base_offset, key=lambda batch: batch.last_offset)
        return (
            self._batches[place] if place < len(self._batches) and self._batches[0].base_offset <= base_offset else None
        )
