"""Checking a producer's batches and markers against the partition's record of it (KIP-98, KIP-360, KIP-890)."""

from __future__ import annotations

from kafkacompat.storage.producers.producer import NO_EPOCH, Producer, StoredBatch
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import Guard, Verifications
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

LAST_EPOCH = 2**15 - 1
EPOCH_BUMP_VERSION = 2
"""From this transaction version on, every transaction has an epoch of its own, and its marker has the next one."""


def check_known_producer(
    header: BatchHeader,
    producer: Producer,
    from_client: bool,
    verifications: Verifications,
    guard: Guard | None,
) -> StoredBatch | None:
    """See ProducerState.check_batch; the partition knows the producer."""
    if from_client:
        duplicate = producer.find_repeated_batch(header)
        if duplicate is not None:
            return duplicate
    if header.producer_epoch < producer.producer_epoch:
        raise make_old_epoch_error(header.producer_id, header.producer_epoch, producer.producer_epoch)
    if header.is_transactional and not producer.is_in_transaction(header.producer_epoch):
        check_guard(header, from_client, verifications, guard)
    if from_client:
        _check_sequence(header, producer)
    if producer.current_txn_first_offset >= 0 and not header.is_transactional:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"producer {header.producer_id} has an open transaction")
    return None


def check_unknown_producer(
    header: BatchHeader, from_client: bool, verifications: Verifications, guard: Guard | None
) -> None:
    """As `check_batch`, for an unknown producer, whose earlier batches may have been deleted."""
    if header.is_transactional:
        check_guard(header, from_client, verifications, guard)
    if from_client:
        verifications.check_first_sequence(header)


def check_guard(header: BatchHeader, from_client: bool, verifications: Verifications, guard: Guard | None) -> None:
    """Check the guard of a batch that begins a transaction; the broker's own batches need none."""
    if from_client or guard is not None:
        verifications.check(header.producer_id, guard)


def make_old_epoch_error(producer_id: int, epoch: int, known: int) -> KafkaError:
    """Return the error for an epoch older than the known one."""
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} has epoch {known}, not {epoch}")


def _check_sequence(header: BatchHeader, producer: Producer) -> None:
    same_epoch = header.producer_epoch == producer.producer_epoch
    expected = producer.next_sequence() if same_epoch else 0
    if header.base_sequence != expected and producer.producer_epoch != NO_EPOCH:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence number {header.base_sequence}, expected {expected}",
        )


def check_marker(marker: Marker, known_epoch: int, coordinator_epoch: int, is_open: bool) -> None:
    """Check a marker before it is written; `is_open`: the producer has an open transaction.

    Raises KafkaError INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED for a late marker, and INVALID_REQUEST for
    one without a producer, which could end nothing.
    """
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        detail = f"a marker cannot belong to producer {marker.producer_id} with epoch {marker.producer_epoch}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, detail)
    is_bumped = marker.transaction_version >= EPOCH_BUMP_VERSION
    # The coordinator may not know that it has written the marker. After the last epoch, no marker has a newer one.
    is_repeat = is_bumped and marker.producer_epoch == known_epoch and (not is_open or known_epoch == LAST_EPOCH)
    if not is_repeat and marker.producer_epoch < known_epoch + is_bumped:
        detail = (
            f"producer {marker.producer_id} has epoch {known_epoch}; a marker of epoch {marker.producer_epoch} is late"
        )
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, detail)
    # Administrators' tools send -1 if they know no coordinator.
    if (marker.coordinator_epoch if marker.coordinator_epoch != -1 else 0) < coordinator_epoch:
        detail = f"the coordinator of epoch {marker.coordinator_epoch} was replaced by {coordinator_epoch}"
        raise KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, detail)
