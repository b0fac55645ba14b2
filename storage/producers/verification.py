"""Pending verifications: producers whose transaction the coordinator is asked about before its first batch (KIP-890).

The coordinator's answer may come after a marker has ended the transaction, and even after the next one has begun, which
may not include the partition. Therefore each verification has a guard, which a marker invalidates. A batch that carries
an invalid guard is rejected.
"""

from __future__ import annotations

from itertools import islice

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

MOST_GUARDS = 10_000
"""Guards of one partition; beyond them the oldest go, whose producers never came back."""


class Guard:
    """A verification of a producer's transaction; batches that wait for the same answer share it.

    `lowest_sequence` is the smallest sequence number among them. `begins_at_zero`: the client takes a new epoch for every
    transaction (transaction version 2), so that sequence numbers restart at 0.
    """

    __slots__ = ("begins_at_zero", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, sequence: int, begins_at_zero: bool) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        self.begins_at_zero = begins_at_zero

    def share(self, producer_epoch: int, sequence: int) -> None:
        """Add a batch that waits for the same answer."""
        if producer_epoch > self.producer_epoch or (
            producer_epoch == self.producer_epoch and sequence < self.lowest_sequence
        ):
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence


NOT_VERIFIED = Guard(-1, -1, False)
"""The guard of batches that are not verified (transaction.partition.verification.enable=false)."""


class Verifications:
    """The guards of one partition, by producer id."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def begin(self, producer_id: int, producer_epoch: int, sequence: int, begins_at_zero: bool) -> Guard:
        """Begin a verification, or join the pending one; returns the guard that the batch has to carry."""
        guard = self._guards.get(producer_id)
        if guard is None:
            self.keep_newest(MOST_GUARDS - 1)
            guard = self._guards[producer_id] = Guard(producer_epoch, sequence, begins_at_zero)
        guard.share(producer_epoch, sequence)
        return guard

    def keep_newest(self, count: int) -> None:
        """Drop the oldest guards, so that at most `count` stay."""
        for producer_id in list(islice(self._guards, max(0, len(self._guards) - count))):
            del self._guards[producer_id]

    def check(self, producer_id: int, guard: Guard | None) -> None:
        """Raise KafkaError INVALID_TXN_STATE if the guard is missing or invalid."""
        if guard is NOT_VERIFIED:
            return
        if guard is None or self._guards.get(producer_id) is not guard:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the batch belongs to no open transaction")

    def check_first_sequence(self, header: BatchHeader) -> None:
        """Raise KafkaError for a batch that cannot be the first of an unknown producer."""
        guard = self._guards.get(header.producer_id)
        if guard is None:
            return
        if header.base_sequence > guard.lowest_sequence:
            # The earlier batch failed for a transient reason and is retried: this one has to be retried after it.
            detail = f"sequence number {guard.lowest_sequence} has to come before {header.base_sequence}"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, detail)
        if guard.begins_at_zero and header.base_sequence:
            detail = f"sequence number {header.base_sequence} begins a transaction, expected 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, detail)

    def note_batch(self, producer_id: int) -> None:
        """A batch was stored: its transaction, if any, is open and its sequence number is known, so drop the guard."""
        if self._guards:
            self._guards.pop(producer_id, None)

    def note_marker(self, producer_id: int, producer_epoch: int) -> None:
        """A marker was stored: drop the guard, because the pending verification is of the ended transaction.

        From transaction version 2 on, a marker has the epoch of the producer's next transaction. A guard of that epoch stays.
        """
        guard = self._guards.get(producer_id)
        if guard is not None and not (guard.begins_at_zero and guard.producer_epoch == producer_epoch):
            del self._guards[producer_id]
