"""The idempotent producers of a partition, so that a retried batch is stored once and in order.

Rules: KIP-98 and KIP-360. The state has the last five batches of each producer. A repeat of one of them returns the
offsets of the stored batch; a gap or an older repeat is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacompat.storage.producers.checks import (
    check_known_producer,
    check_marker,
    check_unknown_producer,
    make_old_epoch_error,
)
from kafkacompat.storage.producers.open_transactions import NO_PLACE, OpenTransactions
from kafkacompat.storage.producers.producer import (
    MOST_PACKED_BYTES,
    NO_BATCH,
    NO_EPOCH,
    PACKED_BATCH,
    PRODUCER_ENTRY,
    Producer,
    Producers,
    StoredBatch,
    sequence_after,
)
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import Guard, Verifications
from kafkacompat.wire.record_batch import BatchHeader


class ProducerState:
    """The producers of one partition, their `open` transactions, and the pending `verifications` of new ones."""

    __slots__ = ("open", "producers", "verifications")

    def __init__(self) -> None:
        self.producers = Producers()
        self.open = OpenTransactions()
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self.producers)

    def require_guard(self, producer_id: int, epoch: int, sequence: int, begins_at_zero: bool) -> Guard | None:
        """Return the guard that a transactional batch needs; None if its transaction is open already. [loop]

        The batch carries the guard once the coordinator has verified its transaction. For `begins_at_zero` see Guard.
        Raises KafkaError INVALID_PRODUCER_EPOCH.
        """
        data = self.producers.packed.get(producer_id)
        if data is not None:
            _, known_epoch, *_, first_offset = PRODUCER_ENTRY.unpack_from(data)
            if epoch < known_epoch:
                raise make_old_epoch_error(producer_id, epoch, known_epoch)
            if epoch == known_epoch and first_offset >= 0:
                return None
        return self.verifications.begin(producer_id, epoch, sequence, begins_at_zero)

    def check_batch(self, header: BatchHeader, from_client: bool, guard: Guard | None = None) -> StoredBatch | None:
        """Check a batch with a producer id before it is written; returns the stored batch that it repeats. [loop]

        A batch that begins a transaction carries its `guard`. Raises KafkaError INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE or NOT_ENOUGH_REPLICAS.
        """
        data = self.producers.packed.get(header.producer_id)
        if data is None:
            check_unknown_producer(header, from_client, self.verifications, guard)
            return None
        _, epoch, last_sequence, _, _, _, _, first_offset = PRODUCER_ENTRY.unpack_from(data)
        is_next = epoch == header.producer_epoch and header.base_sequence == last_sequence + 1
        if is_next and (first_offset >= 0) == header.is_transactional:
            return None  # the case of nearly every batch
        return check_known_producer(header, Producer.unpack(data), from_client, self.verifications, guard)

    def check_marker(self, marker: Marker) -> None:
        """Check a marker before it is written; see checks.check_marker. [loop]"""
        epoch, coordinator_epoch, first_offset = NO_EPOCH, -1, -1
        data = self.producers.packed.get(marker.producer_id)
        if data is not None:
            _, epoch, *_, coordinator_epoch, first_offset = PRODUCER_ENTRY.unpack_from(data)
        check_marker(marker, epoch, coordinator_epoch, first_offset >= 0)

    def first_open_offset(self, producer_id: int) -> int:
        """Return the first offset of a producer's open transaction; -1 without one. [loop]"""
        data = self.producers.packed.get(producer_id)
        return -1 if data is None else PRODUCER_ENTRY.unpack_from(data)[7]

    def add_batch(self, header: BatchHeader, base_offset: int, place: tuple[int, int] = NO_PLACE) -> None:
        """Note a batch with a producer id that was stored at `base_offset`; for `place` see OpenTransactions. [loop]"""
        producer_id, epoch, delta = header.producer_id, header.producer_epoch, header.last_offset_delta
        sequence = sequence_after(header.base_sequence, delta) if header.base_sequence >= 0 else -1
        packed, earlier, coordinator_epoch, first_offset = self.producers.packed, b"", -1, -1
        known = packed.get(producer_id)
        if known is not None:
            _, known_epoch, _, _, _, _, coordinator_epoch, first_offset = PRODUCER_ENTRY.unpack_from(known)
            if known_epoch == epoch:
                earlier = (
                    known[PRODUCER_ENTRY.size :]
                    if len(known) < MOST_PACKED_BYTES
                    else known[PRODUCER_ENTRY.size + PACKED_BATCH.size :]
                )
        if header.is_transactional and first_offset < 0:
            first_offset = base_offset
            self.open.begin(base_offset, place)
        self.verifications.note_batch(producer_id)
        offset, timestamp = base_offset + delta, header.max_timestamp
        entry = PRODUCER_ENTRY.pack(
            producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first_offset
        )
        packed[producer_id] = entry + earlier + PACKED_BATCH.pack(sequence, offset, delta, timestamp)

    def end_transaction(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Note a stored marker; the header has its offset in the log. [loop]"""
        epoch, last, batches, first_offset = header.producer_epoch, NO_BATCH[:3], b"", -1
        known = self.producers.packed.get(header.producer_id)
        if known is not None:
            _, known_epoch, *known_last, _, _, first_offset = PRODUCER_ENTRY.unpack_from(known)
            if known_epoch == epoch:
                last, batches = tuple(known_last), known[PRODUCER_ENTRY.size :]
        if first_offset >= 0:
            self.open.end(first_offset, header.base_offset)
        # -1 means that no marker has come yet, which decides what a batch may repeat (Producer.find_repeated_batch).
        entry = PRODUCER_ENTRY.pack(
            header.producer_id, epoch, *last, header.max_timestamp, max(0, coordinator_epoch), -1
        )
        self.producers.packed[header.producer_id] = entry + batches
        self.verifications.note_marker(header.producer_id, header.producer_epoch)

    def restore(self, producers: Iterable[Producer]) -> None:
        """Start with the producers of a snapshot."""
        self.producers.packed = {producer.producer_id: producer.pack() for producer in producers}
        self.open.restore(filter(lambda offset: offset >= 0, map(self.first_open_offset, self.producers)))

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers without an open transaction that have been idle for `expiration_ms`. [loop]"""
        self.remove_idle(list(self.producers.packed), now_ms - expiration_ms)

    def remove_idle(self, producer_ids: Iterable[int], since_ms: int) -> int:
        """Remove those of some producers that are idle since a time and have no open transaction; returns their number. [loop]"""
        packed, removed = self.producers.packed, 0
        for producer_id in producer_ids:
            data = packed.get(producer_id)
            if data is not None:
                *_, timestamp, _, first_offset = PRODUCER_ENTRY.unpack_from(data)
                if timestamp <= since_ms and first_offset < 0:
                    del packed[producer_id]
                    removed += 1
        return removed
