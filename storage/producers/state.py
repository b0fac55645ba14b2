"""What a partition remembers of its idempotent producers, so that a retry is stored once and in order.

Rules: KIP-98 and KIP-360. Of each producer the last five batches are kept; a batch sent again is answered with
the offsets it got the first time, a gap or an older repeat is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.storage.producers.checks import NO_EPOCH, check_batch, check_first_batch, check_marker, old_epoch
from kafkacompat.storage.producers.open_transactions import NO_PLACE, OpenTransactions
from kafkacompat.storage.producers.verification import Guard, Verifications
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.record_batch import BatchHeader

if TYPE_CHECKING:
    from kafkacompat.storage.producers.transaction_marker import Marker

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1

ENTRY = Struct(">qhiqiqiq")
"""A producer in a snapshot: id, epoch, last sequence number, last offset, offsets of its last batch less one, time of its last
batch or marker, coordinator epoch, where its open transaction begins."""

_BATCH = Struct(">iqiq")
_FULL = ENTRY.size + BATCHES_KEPT * _BATCH.size


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


_NO_BATCH = StoredBatch(-1, -1, 0, -1)


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
        last = self.batches[-1] if self.batches else _NO_BATCH
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
        return entry + b"".join(_BATCH.pack(*batch) for batch in self.batches)

    @classmethod
    def unpack(cls, data: bytes) -> Producer:
        """Read what `pack` makes."""
        producer = cls.of_entry(data[: ENTRY.size])
        producer.batches = [StoredBatch._make(fields) for fields in _BATCH.iter_unpack(data[ENTRY.size :])]
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


class ProducerState:
    """The producers of one partition; those of their transactions that are ``open``, and who is asked about."""

    __slots__ = ("open", "producers", "verifications")

    def __init__(self) -> None:
        self.producers = Producers()
        self.open = OpenTransactions()
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self.producers)

    def guard(self, producer_id: int, epoch: int, sequence: int, begins_at_zero: bool) -> Guard | None:
        """What a transactional batch has to come with, once the coordinator has vouched for it; None for nothing. [loop]

        Raises KafkaError INVALID_PRODUCER_EPOCH. For `begins_at_zero` see Guard.
        """
        data = self.producers.packed.get(producer_id)
        if data is not None:
            _, known_epoch, *_, first_offset = ENTRY.unpack_from(data)
            if epoch < known_epoch:
                raise old_epoch(producer_id, epoch, known_epoch)
            if epoch == known_epoch and first_offset >= 0:
                return None
        return self.verifications.begin(producer_id, epoch, sequence, begins_at_zero)

    def check(self, header: BatchHeader, from_client: bool, guard: Guard | None = None) -> StoredBatch | None:
        """Judge a batch that has a producer id before it is written; returns the stored batch it repeats. [loop]

        A batch that begins a transaction comes with its `guard`. Raises KafkaError INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE or NOT_ENOUGH_REPLICAS.
        """
        data = self.producers.packed.get(header.producer_id)
        if data is None:
            check_first_batch(header, from_client, self.verifications, guard)
            return None
        _, epoch, last_sequence, _, _, _, _, first_offset = ENTRY.unpack_from(data)
        is_next = epoch == header.producer_epoch and header.base_sequence == last_sequence + 1
        if is_next and (first_offset >= 0) == header.is_transactional:
            return None  # what nearly every batch is
        return check_batch(header, Producer.unpack(data), from_client, self.verifications, guard)

    def check_marker(self, marker: Marker) -> None:
        """Judge a marker before it is written; see producer_checks. [loop]"""
        epoch, coordinator_epoch, first_offset = NO_EPOCH, -1, -1
        data = self.producers.packed.get(marker.producer_id)
        if data is not None:
            _, epoch, *_, coordinator_epoch, first_offset = ENTRY.unpack_from(data)
        check_marker(marker, epoch, coordinator_epoch, first_offset >= 0)

    def first_open_offset(self, producer_id: int) -> int:
        """Where the open transaction of a producer begins; -1 when it has none. [loop]"""
        data = self.producers.packed.get(producer_id)
        return -1 if data is None else ENTRY.unpack_from(data)[7]

    def add(self, header: BatchHeader, base_offset: int, place: tuple[int, int] = NO_PLACE) -> None:
        """Take a data batch with a producer id, stored at `base_offset`, into account; for `place` see OpenTransactions. [loop]"""
        producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
        sequence = sequence_after(header.base_sequence, delta) if header.base_sequence >= 0 else -1
        packed, earlier, coordinator_epoch, first_offset = self.producers.packed, b"", -1, -1
        known = packed.get(producer_id)
        if known is not None:
            _, known_epoch, _, _, _, _, coordinator_epoch, first_offset = ENTRY.unpack_from(known)
            if known_epoch == epoch:
                earlier = known[ENTRY.size :] if len(known) < _FULL else known[ENTRY.size + _BATCH.size :]
        if header.is_transactional and first_offset < 0:
            first_offset = base_offset
            self.open.begin(base_offset, place)
        self.verifications.batch_added(producer_id)
        offset, timestamp = base_offset + delta, header.max_timestamp
        entry = ENTRY.pack(producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset)
        packed[producer_id] = entry + earlier + _BATCH.pack(sequence, offset, delta, timestamp)

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Take a transaction marker into account, with the offset that it has in the log. [loop]"""
        epoch, last, batches, first_offset = header.producer_epoch, _NO_BATCH[:3], b"", -1
        known = self.producers.packed.get(header.producer_id)
        if known is not None:
            _, known_epoch, *known_last, _, _, first_offset = ENTRY.unpack_from(known)
            if known_epoch == epoch:
                last, batches = tuple(known_last), known[ENTRY.size :]
        if first_offset >= 0:
            self.open.end(first_offset, header.base_offset)
        # -1 says that no marker came yet: what a batch may repeat hangs on it (Producer.find).
        entry = ENTRY.pack(header.producer_id, epoch, *last, header.max_timestamp, max(0, coordinator_epoch), -1)
        self.producers.packed[header.producer_id] = entry + batches
        self.verifications.marker_added(header.producer_id, header.producer_epoch)

    def restore(self, producers: Iterable[Producer]) -> None:
        """Start from a snapshot."""
        self.producers.packed = {producer.producer_id: producer.pack() for producer in producers}
        self.open.restore(filter(lambda offset: offset >= 0, map(self.first_open_offset, self.producers)))

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without an open transaction that have been idle for `expiration_ms`. [loop]"""
        self.remove_idle(list(self.producers.packed), now_ms - expiration_ms)

    def remove_idle(self, producer_ids: Iterable[int], since_ms: int) -> int:
        """Forget those of these producers that sent nothing after a time and have no open transaction; returns how many. [loop]"""
        packed, removed = self.producers.packed, 0
        for producer_id in producer_ids:
            data = packed.get(producer_id)
            if data is not None:
                *_, timestamp, _, first_offset = ENTRY.unpack_from(data)
                if timestamp <= since_ms and first_offset < 0:
                    del packed[producer_id]
                    removed += 1
        return removed


def last_timestamp(data: bytes) -> int:
    """When a producer that is packed sent its last batch (ms)."""
    timestamp: int = ENTRY.unpack_from(data)[5]
    return timestamp
