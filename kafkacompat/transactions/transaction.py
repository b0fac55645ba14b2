"""The state of a transactional id, and the state after each request (KIP-98, KIP-360, KIP-890).

All methods compute new values; `changes` writes them to the log.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.transactions.state import (
    BETWEEN_TRANSACTIONS,
    COMPLETION,
    EMPTY,
    EPOCH_BUMP_VERSION,
    ON_END,
    ONGOING,
    EndEffect,
    Ending,
    TransactionState,
    check_transition,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError

TopicPartition: TypeAlias = "tuple[str, int]"

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
MAX_EPOCH = 0x7FFF
"""No client gets this epoch, so that every producer can be fenced."""
LAST_EPOCH = MAX_EPOCH - 1


class ProducerIdentity(NamedTuple):
    """A producer id and one of its epochs."""

    producer_id: int
    producer_epoch: int


class TransactionMetadata(NamedTuple):
    """The state of a transactional id. The log has all fields except ``last_producer_epoch``.

    ``start_ms`` and ``last_update_ms`` are milliseconds since 1970, -1 for none. ``previous_producer_id`` is the producer id before
    the last change. ``next_producer_id`` is the producer id that the completion brings, -1 for none. ``last_producer_epoch`` is the
    epoch that the client may still name because a response was lost. ``client_version`` is the client's transaction version.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_EPOCH
    client_version: int = 0

    @property
    def producer(self) -> ProducerIdentity:
        """The producer that may write for the transactional id."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for a client."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        """Whether the last change was made with transaction version 2."""
        return self.client_version >= EPOCH_BUMP_VERSION

    def _change(self, state: TransactionState, now_ms: int, **changes: Any) -> TransactionMetadata:
        check_transition(self.state, state)
        previous = self.producer_id
        return self._replace(state=state, last_update_ms=now_ms, previous_producer_id=previous, **changes)

    # InitProducerId

    def needs_producer_id(self, expected: ProducerIdentity | None) -> bool:
        """Return whether `initialized` needs a new producer id."""
        return self.is_exhausted and (expected is None or expected.producer_epoch == self.producer_epoch)

    def may_initialize(self, expected: ProducerIdentity | None) -> bool:
        """Return whether a client that names *expected* may go on: it has to be the current producer or its predecessor."""
        return (
            expected is None
            or self.producer_epoch == NO_EPOCH
            or expected.producer_id == self.producer_id
            or (expected.producer_id == self.previous_producer_id and expected.producer_epoch >= LAST_EPOCH)
        )

    def as_initialized(
        self, timeout_ms: int, expected: ProducerIdentity | None, new_producer_id: int | None, now_ms: int
    ) -> TransactionMetadata:
        """Return the state with the next epoch, or with *new_producer_id* and epoch 0. Raises KafkaError: PRODUCER_FENCED."""
        fresh = {"timeout_ms": timeout_ms, "partitions": frozenset(), "start_ms": NO_TIME}
        if self.needs_producer_id(expected):
            assert new_producer_id is not None
            last_epoch = self.producer_epoch if expected is not None else NO_EPOCH
            epochs = {"producer_id": new_producer_id, "producer_epoch": 0, "last_producer_epoch": last_epoch}
        else:
            epochs = self._next_epochs(expected)
        return self._change(EMPTY, now_ms, **fresh, **epochs)

    def _next_epochs(self, expected: ProducerIdentity | None) -> dict[str, int]:
        epoch = self.producer_epoch
        if expected is None:
            return {"producer_epoch": epoch + 1, "last_producer_epoch": NO_EPOCH}
        if epoch in (NO_EPOCH, expected.producer_epoch):
            return {"producer_epoch": epoch + 1, "last_producer_epoch": epoch}
        if expected.producer_epoch == self.last_producer_epoch:
            return {}  # The response to an earlier request was lost.
        reason = f"epoch {expected.producer_epoch} is neither the current epoch, {epoch}, nor the previous one"
        raise KafkaError(ErrorCode.PRODUCER_FENCED, reason)

    # AddPartitionsToTxn

    def with_partitions(
        self, partitions: Collection[TopicPartition], client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Return the state with these partitions added; a new transaction begins if none is open."""
        start_ms = now_ms if self.state in BETWEEN_TRANSACTIONS else self.start_ms
        return self._change(
            ONGOING,
            now_ms,
            partitions=self.partitions.union(partitions),
            start_ms=start_ms,
            client_version=client_version,
        )

    # EndTxn

    def judge_end(
        self, producer: ProducerIdentity, ending: Ending, client_version: int, *, is_busy: bool
    ) -> EndEffect | ErrorCode:
        """Return the effect of an EndTxn, or the error for the client; *is_busy* means that another change is under way."""
        bumps = client_version >= EPOCH_BUMP_VERSION
        if bumps and is_busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS  # The change under way may assign this producer id and epoch.
        is_repeat = bumps and self.is_repeat(producer)
        if self.producer_id != producer.producer_id and not is_repeat:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if self.producer_epoch != producer.producer_epoch and not is_repeat:
            return ErrorCode.PRODUCER_FENCED
        if is_busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return ON_END[bumps, self.state].get((ending, is_repeat), ErrorCode.PRODUCER_FENCED)

    def is_repeat(self, producer: ProducerIdentity) -> bool:
        """Return whether *producer* ended the last transaction, and has not received its new epoch."""
        if self.producer_id == producer.producer_id:
            return self.producer_epoch == producer.producer_epoch + 1
        return producer == (self.previous_producer_id, LAST_EPOCH) and self.producer_epoch == 0

    def as_prepared(
        self, ending: Ending, client_version: int, new_producer_id: int | None, now_ms: int
    ) -> TransactionMetadata:
        """Return the state with the decision how the transaction ends; with transaction version 2 under the next epoch.

        *new_producer_id* is the producer id that the completion brings. It is needed if version 2 has no epoch left.
        """
        changes: dict[str, Any] = {"client_version": client_version, "next_producer_id": NO_PRODUCER_ID}
        if client_version >= EPOCH_BUMP_VERSION:
            changes["producer_epoch"] = min(self.producer_epoch + 1, MAX_EPOCH)
            changes["last_producer_epoch"] = self.producer_epoch
            if new_producer_id is not None:
                changes["next_producer_id"] = new_producer_id
        if self.state is not ONGOING:
            changes["start_ms"] = now_ms  # No transaction began, but Kafka requires a start time.
        return self._change(ending.value, now_ms, **changes)

    def as_fenced(self, server_version: int, new_producer_id: int | None, now_ms: int) -> TransactionMetadata:
        """Return the state with the decision to abort, under an epoch that the producer does not have."""
        if server_version >= EPOCH_BUMP_VERSION:
            return self.as_prepared(Ending.ABORT, server_version, new_producer_id, now_ms)
        epoch = min(self.producer_epoch + 1, MAX_EPOCH)
        bumped = self._replace(producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
        return bumped.as_prepared(Ending.ABORT, 0, None, now_ms)

    def as_completed(self, now_ms: int) -> TransactionMetadata:
        """Return the state of a decided transaction after every partition got its marker."""
        changes: dict[str, Any] = {"partitions": frozenset(), "next_producer_id": NO_PRODUCER_ID}
        if self.bumps_epochs and self.next_producer_id != NO_PRODUCER_ID:
            changes |= {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._change(COMPLETION[self.state], now_ms, **changes)
