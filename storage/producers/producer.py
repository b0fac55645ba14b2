"""One idempotent producer as a partition remembers it: its epoch, its open transaction and its last five batches."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from struct import Struct
from typing import NamedTuple

from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader

NO_EPOCH = -1
BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1

ENTRY = Struct(">qhiqiqiq")
"""A producer in a snapshot: id, epoch, last sequence number, last offset, offsets of its last batch less one, time of its last
batch or marker, coordinator epoch, where its open transaction begins."""

BATCH = Struct(">iqiq")
FULL = ENTRY.size + BATCHES_KEPT * BATCH.size


class StoredBatch(NamedTuple):
    """A batch that is in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return sequence_before(self.last_sequence, self.offset_delta)

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


NO_BATCH = StoredBatch(-1, -1, 0, -1)


def sequence_after(sequence: int, steps: int) -> int:
    """`steps` sequence numbers later; after 2147483647 comes 0."""
    return (sequence + steps) & MAX_SEQUENCE


def sequence_before(sequence: int, steps: int) -> int:
    """`steps` sequence numbers earlier."""
    return (sequence - steps) & MAX_SEQUENCE


class Producer:
    """One producer's latest epoch and its last batches, oldest first: what is kept of it in bytes, to be looked at or changed."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset = -1
        """Where its open transaction begins; -1 when there is none."""
        self.batches: list[StoredBatch] = []

    def is_in_transaction(self, epoch: int) -> bool:
        """Whether it has an open transaction of this epoch."""
        return self.current_txn_first_offset >= 0 and self.producer_epoch == epoch

    def find(self, header: BatchHeader) -> StoredBatch | None:
        """The stored batch that this one repeats.

        None that lies before the last marker: its transaction is over, and where the client has no new epoch it uses the
        sequence numbers again of what it gave up when it aborted.
        """
        is_over = self.coordinator_epoch >= 0 and self.current_txn_first_offset < 0
        if header.producer_epoch != self.producer_epoch or is_over:
            return None
        last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == header.last_offset_delta:
                return batch if batch.base_offset >= self.current_txn_first_offset else None
        return None

    def next_sequence(self) -> int:
        """The sequence number that has to come next in this epoch; 0 when none came yet."""
        return sequence_after(self.batches[-1].last_sequence, 1) if self.batches else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Producer) and self.pack() == other.pack()

    def pack(self) -> bytes:
        """Its bytes: a snapshot's entry, and the batches."""
        last = self.batches[-1] if self.batches else NO_BATCH
        entry = ENTRY.pack(
            self.producer_id,
            self.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )
        return entry + b"".join(BATCH.pack(*batch) for batch in self.batches)

    @classmethod
    def unpack(cls, data: bytes) -> Producer:
        """Read what `pack` makes."""
        producer = cls.of_entry(data[: ENTRY.size])
        producer.batches = [StoredBatch._make(fields) for fields in BATCH.iter_unpack(data[ENTRY.size :])]
        return producer

    @classmethod
    def of_entry(cls, entry: Buffer) -> Producer:
        """Read a snapshot's entry, which knows the last batch alone."""
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset = ENTRY.unpack(entry)
        producer = cls(producer_id)
        producer.producer_epoch, producer.last_timestamp = epoch, timestamp
        producer.coordinator_epoch, producer.current_txn_first_offset = coordinator_epoch, first_offset
        if offset >= 0:
            producer.batches.append(StoredBatch(sequence, offset, delta, timestamp))
        return producer


class Producers(MutableMapping[int, Producer]):
    """Producers by their ids.

    Each is kept as one `bytes`: a million of them take a quarter of the memory that objects would, and the garbage collector
    never looks at them. What is read is a copy; only what is set is kept.
    """

    __slots__ = ("packed",)

    def __init__(self) -> None:
        self.packed: dict[int, bytes] = {}

    def __getitem__(self, producer_id: int) -> Producer:
        return Producer.unpack(self.packed[producer_id])

    def __setitem__(self, producer_id: int, producer: Producer) -> None:
        self.packed[producer_id] = producer.pack()

    def __delitem__(self, producer_id: int) -> None:
        del self.packed[producer_id]

    def __iter__(self) -> Iterator[int]:
        # A copy, which is made at once: another thread may go through them.
        return iter(list(self.packed))

    def __len__(self) -> int:
        return len(self.packed)

    def __repr__(self) -> str:
        return f"Producers({list(self)})"

    def values(self) -> list[Producer]:  # type: ignore[override]
        """All of them as they are now, for any thread."""
        return [Producer.unpack(data) for data in list(self.packed.values())]

    def entries(self) -> list[bytes]:
        """All of them as the entries of a snapshot, for any thread."""
        return [data[: ENTRY.size] for data in list(self.packed.values())]


def last_timestamp(data: bytes) -> int:
    """When a producer that is packed sent its last batch (ms)."""
    timestamp: int = ENTRY.unpack_from(data)[5]
    return timestamp
