"""A partition's record of an idempotent producer: its epoch, its open transaction and its last five batches."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from struct import Struct
from typing import NamedTuple

from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader

NO_EPOCH = -1
BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1

PRODUCER_ENTRY = Struct(">qhiqiqiq")
"""A producer in a snapshot: id, epoch, last sequence number, last offset, offset delta of the last batch, timestamp of
the last batch or marker, coordinator epoch, first offset of the open transaction."""

PACKED_BATCH = Struct(">iqiq")
"""A batch in a packed producer: the fields of StoredBatch."""

MOST_PACKED_BYTES = PRODUCER_ENTRY.size + BATCHES_KEPT * PACKED_BATCH.size
"""Bytes of a packed producer with as many batches as are kept."""


class StoredBatch(NamedTuple):
    """Offsets and sequence numbers of a batch in the log; `offset_delta` is its last offset less its base offset."""

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
    """Return the sequence number `steps` after another; 0 follows 2147483647."""
    return (sequence + steps) & MAX_SEQUENCE


def sequence_before(sequence: int, steps: int) -> int:
    """Return the sequence number `steps` before another."""
    return (sequence - steps) & MAX_SEQUENCE


class Producer:
    """A producer's latest epoch and last batches, oldest first: the unpacked form, to be read or changed."""

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
        """First offset of its open transaction; -1 without one."""
        self.batches: list[StoredBatch] = []

    def is_in_transaction(self, epoch: int) -> bool:
        """Return whether it has an open transaction of this epoch."""
        return self.current_txn_first_offset >= 0 and self.producer_epoch == epoch

    def find_repeated_batch(self, header: BatchHeader) -> StoredBatch | None:
        """Return the stored batch that a batch repeats; None if it repeats none.

        Batches before the last marker do not count. A client that aborts without taking a new epoch uses the sequence
        numbers of unsent batches again.
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
        """Return the next sequence number of this epoch; 0 if it has no batch yet."""
        return sequence_after(self.batches[-1].last_sequence, 1) if self.batches else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Producer) and self.pack() == other.pack()

    def pack(self) -> bytes:
        """Pack it: a snapshot's entry, followed by the batches."""
        last = self.batches[-1] if self.batches else NO_BATCH
        entry = PRODUCER_ENTRY.pack(
            self.producer_id,
            self.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.current_txn_first_offset,
        )
        return entry + b"".join(PACKED_BATCH.pack(*batch) for batch in self.batches)

    @classmethod
    def unpack(cls, data: bytes) -> Producer:
        """Reverse `pack`."""
        producer = cls.from_entry(data[: PRODUCER_ENTRY.size])
        producer.batches = [
            StoredBatch._make(fields) for fields in PACKED_BATCH.iter_unpack(data[PRODUCER_ENTRY.size :])
        ]
        return producer

    @classmethod
    def from_entry(cls, entry: Buffer) -> Producer:
        """Read a snapshot's entry, which has the last batch alone."""
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset = PRODUCER_ENTRY.unpack(
            entry
        )
        producer = cls(producer_id)
        producer.producer_epoch, producer.last_timestamp = epoch, timestamp
        producer.coordinator_epoch, producer.current_txn_first_offset = coordinator_epoch, first_offset
        if offset >= 0:
            producer.batches.append(StoredBatch(sequence, offset, delta, timestamp))
        return producer


class Producers(MutableMapping[int, Producer]):
    """Producers by id, each packed into one `bytes`.

    A million of them take a quarter of the memory of objects, and the garbage collector does not visit them. Reading
    returns a copy; a changed one has to be set.
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
        # A copy, made in one step: another thread may iterate.
        return iter(list(self.packed))

    def __len__(self) -> int:
        return len(self.packed)

    def __repr__(self) -> str:
        return f"Producers({list(self)})"

    def values(self) -> list[Producer]:  # type: ignore[override]
        """Return all producers at this moment. [any thread]"""
        return [Producer.unpack(data) for data in list(self.packed.values())]

    def entries(self) -> list[bytes]:
        """Return all producers as entries of a snapshot. [any thread]"""
        return [data[: PRODUCER_ENTRY.size] for data in list(self.packed.values())]


def unpack_last_timestamp(data: bytes) -> int:
    """Return the timestamp (ms) of a packed producer's last batch or marker."""
    timestamp: int = PRODUCER_ENTRY.unpack_from(data)[5]
    return timestamp
