"""What a partition remembers of its idempotent producers, so that a retry is stored once and in order.

Rules: KIP-98 and KIP-360. Of each producer the last five batches are kept; a batch sent again is answered with
the offsets it got the first time, a gap or an older repeat is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.storage.producers.checks import check_batch, check_first_batch, check_marker, old_epoch
from kafkacompat.storage.producers.open_transactions import NO_PLACE, OpenTransactions
from kafkacompat.storage.producers.producer import (
    BATCH,
    ENTRY,
    FULL,
    NO_BATCH,
    NO_EPOCH,
    Producer,
    Producers,
    StoredBatch,
    sequence_after,
)
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import Guard, Verifications
from kafkacompat.wire.record_batch import BatchHeader


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
                earlier = known[ENTRY.size :] if len(known) < FULL else known[ENTRY.size + BATCH.size :]
        if header.is_transactional and first_offset < 0:
            first_offset = base_offset
            self.open.begin(base_offset, place)
        self.verifications.batch_added(producer_id)
        offset, timestamp = base_offset + delta, header.max_timestamp
        entry = ENTRY.pack(producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset)
        packed[producer_id] = entry + earlier + BATCH.pack(sequence, offset, delta, timestamp)

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Take a transaction marker into account, with the offset that it has in the log. [loop]"""
        epoch, last, batches, first_offset = header.producer_epoch, NO_BATCH[:3], b"", -1
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
