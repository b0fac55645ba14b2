"""A replica's log in memory: whole batches, leader epochs, and a part that is on the disk."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, succeed

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader, NewRecord, build_batch, read_header, split_batches

NOW_MS = 1_700_000_000_000


def topic_id_of(topic: str) -> bytes:
    """Return the id that a topic has in these tests."""
    return topic.encode().rjust(16, b"\x01")


def build_records(value: str, *, count: int = 1, base_offset: int = 0, leader_epoch: int = 0) -> bytes:
    """Build one batch."""
    records: list[NewRecord] = [(NOW_MS, None, value.encode(), [])] * count
    return build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch)


class ReplicaLog:
    """The log of one replica, for a leader or a follower.

    ``finish`` is called with the end of each change, and calls it at once or later; None lets appends end at once without
    a Deferred. With ``syncs`` an append ends when it is on the disk.
    """

    def __init__(
        self,
        topic: str = "t",
        index: int = 0,
        *,
        finish: Callable[[Callable[[], None]], None] | None = None,
        syncs: bool = False,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id_of(topic)
        self.index = index
        self.batches: list[bytes] = []
        self.epochs: list[tuple[int, int]] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.synced_end_offset = 0
        self.high_watermark = 0
        self.changes: list[tuple[str, int]] = []
        """What was done to the log: ("truncate", offset), ("start over", offset), ("append", number of batches)."""
        self.problem: Exception | None = None
        """Raised by the next change."""
        self._finish = finish
        self._syncs = syncs

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def reported_end_offset(self) -> int:
        return self.synced_end_offset if self._syncs else self.log_end_offset

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    @property
    def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in self.batches]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(leader epoch, base offset) of every batch."""
        return [(header.partition_leader_epoch, header.base_offset) for header in self.headers]

    def list_batches(self, offset: int) -> list[bytes]:
        """Return the batches from an offset on."""
        return [batch for batch in self.batches if read_header(batch).last_offset >= offset]

    # The leader's side

    def produce(self, leader_epoch: int, *values: str, count: int = 1) -> None:
        """Append batches as the leader of an epoch."""
        for value in values:
            self._append(build_records(value, count=count, base_offset=self.log_end_offset, leader_epoch=leader_epoch))

    def begin_epoch(self, epoch: int) -> None:
        """Let an epoch begin at the log's end."""
        self._assign(epoch, self.log_end_offset)

    def delete_records(self, offset: int) -> None:
        """Move the log's start."""
        self.log_start_offset = max(self.log_start_offset, min(offset, self.log_end_offset))
        while self.batches and read_header(self.batches[0]).last_offset < self.log_start_offset:
            self.batches.pop(0)
        later = [(epoch, start) for epoch, start in self.epochs if start > self.log_start_offset]
        earlier = [epoch for epoch, start in self.epochs if start <= self.log_start_offset]
        self.epochs = [(earlier[-1], self.log_start_offset), *later] if earlier else later

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches from an offset on, one at least."""
        data = b""
        for batch in self.batches:
            if read_header(batch).last_offset >= offset:
                if data and len(data) + len(batch) > max_bytes:
                    break
                data += batch
        return data

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        if epoch < 0 or not self.epochs or epoch > self.epochs[-1][0]:
            return -1, -1
        if epoch == self.epochs[-1][0]:
            return epoch, self.log_end_offset
        slot = sum(known <= epoch for known, _ in self.epochs)
        return (self.epochs[slot - 1][0] if slot else epoch), self.epochs[slot][1]

    # The follower's side

    def append_fetched(
        self, records: Buffer, leader_high_watermark: int, leader_log_start_offset: int
    ) -> Deferred[object] | object:
        self._raise_problem()
        batches = [bytes(batch) for batch in split_batches(records)]
        for batch in batches:
            header = read_header(batch)
            if self.log_start_offset == self.log_end_offset and header.last_offset >= self.log_end_offset:
                self.log_end_offset = header.base_offset  # the leader's log starts inside the batch
            if header.base_offset != self.log_end_offset:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{header.base_offset} is not {self.log_end_offset}")
            if header.partition_leader_epoch < self.last_epoch:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"an epoch before {self.last_epoch}")
            self._append(batch)
        if batches:
            self.changes.append(("append", len(batches)))
        self.high_watermark = max(self.high_watermark, min(leader_high_watermark, self.log_end_offset))
        self.delete_records(leader_log_start_offset)
        end_offset = self.log_end_offset
        return self._end_change(lambda: self._sync(end_offset)) if self._finish else None

    def truncate(self, offset: int) -> Deferred[None]:
        self._raise_problem()
        assert offset >= self.log_start_offset
        self.changes.append(("truncate", offset))
        return self._end_change(lambda: self.cut(offset))

    def start_over_at(self, offset: int) -> Deferred[None]:
        self._raise_problem()
        self.changes.append(("start over", offset))

        def start_over() -> None:
            self.batches, self.epochs = [], []
            self.log_start_offset = self.log_end_offset = self.synced_end_offset = self.high_watermark = offset

        return self._end_change(start_over)

    def cut(self, offset: int) -> None:
        """Remove the batches that reach an offset."""
        while self.batches and read_header(self.batches[-1]).last_offset >= offset:
            self.log_end_offset = read_header(self.batches.pop()).base_offset
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < min(offset, self.log_end_offset)]
        self.synced_end_offset = min(self.synced_end_offset, self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)

    def sync(self) -> None:
        """Put everything on the disk."""
        self.synced_end_offset = self.log_end_offset

    def crash(self, rng: Random, **arguments: Any) -> ReplicaLog:
        """Return the log as a restart finds it: some of the batches that were not synced are gone."""
        log = ReplicaLog(self.topic, self.index, **arguments)
        log.batches, log.epochs = list(self.batches), list(self.epochs)
        log.log_start_offset, log.log_end_offset = self.log_start_offset, self.log_end_offset
        log.synced_end_offset = self.synced_end_offset
        log.high_watermark = self.high_watermark
        log.cut(rng.randint(self.synced_end_offset, self.log_end_offset))
        log.synced_end_offset = log.log_end_offset
        return log

    def _append(self, batch: bytes) -> None:
        header = read_header(batch)
        self._assign(header.partition_leader_epoch, header.base_offset)
        self.batches.append(batch)
        self.log_end_offset = header.last_offset + 1

    def _assign(self, epoch: int, start_offset: int) -> None:
        if epoch < 0 or (self.epochs and self.epochs[-1][0] == epoch):
            return
        self.epochs = [(known, start) for known, start in self.epochs if known < epoch and start < start_offset]
        self.epochs.append((epoch, start_offset))

    def _sync(self, end_offset: int) -> None:
        self.synced_end_offset = max(self.synced_end_offset, min(end_offset, self.log_end_offset))

    def _end_change(self, change: Callable[[], None]) -> Deferred[None]:
        if self._finish is None:
            change()
            return succeed(None)
        ended: Deferred[None] = Deferred()

        def end() -> None:
            change()
            ended.callback(None)

        self._finish(end)
        return ended

    def _raise_problem(self) -> None:
        problem, self.problem = self.problem, None
        if problem is not None:
            raise problem
