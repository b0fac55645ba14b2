"""What a partition remembers of its idempotent producers, so that a retry is stored once and in order.

Rules: KIP-98 and KIP-360. Of each producer the last five batches are kept; a batch sent again is answered with
the offsets it got the first time, a gap or an older repeat is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

BATCHES_KEPT = 5
MAX_SEQUENCE = 2**31 - 1
NO_EPOCH = -1


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


def sequence_after(sequence: int, steps: int) -> int:
    """`steps` sequence numbers later; after 2147483647 comes 0."""
    return (sequence + steps) & MAX_SEQUENCE


def sequence_before(sequence: int, steps: int) -> int:
    """`steps` sequence numbers earlier."""
    return (sequence - steps) & MAX_SEQUENCE


class Producer:
    """One producer's latest epoch and its last batches, oldest first."""

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

    def add(self, epoch: int, batch: StoredBatch) -> None:
        """Remember a batch that was stored."""
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.batches.clear()
        elif len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def end_transaction(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Note a transaction marker."""
        if epoch != self.producer_epoch:
            self.producer_epoch = epoch
            self.batches.clear()
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = -1
        self.last_timestamp = timestamp

    def find(self, header: BatchHeader) -> StoredBatch | None:
        """The stored batch that this one repeats."""
        if header.producer_epoch != self.producer_epoch:
            return None
        last_sequence = sequence_after(header.base_sequence, header.last_offset_delta)
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.offset_delta == header.last_offset_delta:
                return batch
        return None

    def next_sequence(self) -> int:
        """The sequence number that has to come next in this epoch; 0 when none came yet."""
        return sequence_after(self.batches[-1].last_sequence, 1) if self.batches else 0


class ProducerState:
    """The producers of one partition."""

    __slots__ = ("producers",)

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self.producers)

    def check(self, header: BatchHeader, from_client: bool) -> StoredBatch | None:
        """Judge a batch that has a producer id before it is written; returns the stored batch it repeats. [loop]

        Raises KafkaError INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None  # whatever the sequence number: its earlier batches may have been deleted
        if from_client:
            duplicate = producer.find(header)
            if duplicate is not None:
                return duplicate
        if header.producer_epoch < producer.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id} has epoch {producer.producer_epoch}, not {header.producer_epoch}",
            )
        if from_client:
            _check_sequence(header, producer)
        if producer.current_txn_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} has an open transaction")
        return None

    def add(self, header: BatchHeader, base_offset: int) -> None:
        """Take a data batch with a producer id, stored at `base_offset`, into account. [loop]"""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_id)
        delta = header.last_offset_delta
        last_sequence = sequence_after(header.base_sequence, delta) if header.base_sequence >= 0 else -1
        producer.add(
            header.producer_epoch, StoredBatch(last_sequence, base_offset + delta, delta, header.max_timestamp)
        )
        if header.is_transactional and producer.current_txn_first_offset < 0:
            producer.current_txn_first_offset = base_offset

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Take a transaction marker into account."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_id)
        producer.end_transaction(header.producer_epoch, coordinator_epoch, header.max_timestamp)

    def restore(self, producers: Iterable[Producer]) -> None:
        """Start from a snapshot."""
        self.producers = {producer.producer_id: producer for producer in producers}

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without an open transaction that have been idle for `expiration_ms`. [loop]"""
        for producer in list(self.producers.values()):
            if is_expired(producer, now_ms, expiration_ms):
                del self.producers[producer.producer_id]


def is_expired(producer: Producer, now_ms: int, expiration_ms: int) -> bool:
    """Whether a producer need not be remembered any longer."""
    return producer.current_txn_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms


def _check_sequence(header: BatchHeader, producer: Producer) -> None:
    same_epoch = header.producer_epoch == producer.producer_epoch
    expected = producer.next_sequence() if same_epoch else 0
    if header.base_sequence != expected and producer.producer_epoch != NO_EPOCH:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence number {header.base_sequence}, expected {expected}",
        )
