"""A coordinator's topic in memory, whose appends succeed at once, later or never, as a test wishes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.storage.producers.verification import Guard
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import Record, assemble_batch, read_body, read_header, read_records


@dataclass
class HeldAppend:
    """An append that the test decides on."""

    log: FakeCoordinatorLog
    partition: int
    batch: bytes
    done: Deferred[None]

    def succeed(self) -> None:
        """Let the batch be in the log."""
        self.log.store(self.partition, self.batch)
        self.done.callback(None)

    def fail(self, code: ErrorCode) -> None:
        """Refuse it."""
        self.done.errback(KafkaError(code))


class FakeCoordinatorLog:
    """Fits `CoordinatorLog`. With ``hold`` appends wait in ``held``; with ``refuse_with`` they fail at once.

    A partition in ``uncommitted`` is committed when its Deferred fires.
    """

    def __init__(self, partition_count: int = 4) -> None:
        self.topic = "__coordinated"
        self.partition_count = partition_count
        self.batches: defaultdict[int, list[bytes]] = defaultdict(list)
        self.hold = False
        self.held: list[HeldAppend] = []
        self.refuse_with: ErrorCode | None = None
        self.uncommitted: dict[int, Deferred[None]] = {}

    def append(self, partition: int, batch: bytes, guard: Guard | None = None) -> Deferred[None]:
        if self.refuse_with is not None:
            return fail(KafkaError(self.refuse_with))
        if self.hold:
            held = HeldAppend(self, partition, batch, Deferred())
            self.held.append(held)
            return held.done
        self.store(partition, batch)
        return succeed(None)

    def store(self, partition: int, batch: bytes) -> None:
        """Put a batch at the end, with the offsets that follow."""
        offset = read_header(self.batches[partition][-1]).last_offset + 1 if self.batches[partition] else 0
        header = read_header(batch)
        self.batches[partition].append(assemble_batch(header._replace(base_offset=offset), read_body(batch, header)))

    def read(self, partition: int) -> Iterator[bytes]:
        return iter(list(self.batches[partition]))

    def wait_until_committed(self, partition: int) -> Deferred[None]:
        if partition not in self.uncommitted:
            return succeed(None)
        return self.uncommitted[partition]

    def records(self) -> list[Record]:
        """Every record, partition by partition."""
        return [
            record
            for partition in sorted(self.batches)
            for batch in self.batches[partition]
            for record in read_records(batch)
        ]
