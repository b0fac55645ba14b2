"""Which producers the transaction coordinator is being asked about, before their first batch of a transaction (KIP-890).

The answer may come when a marker has ended the transaction meanwhile, and even when the next one has begun, of which the
partition is no part. So what is asked for has a guard, of which a marker makes nothing: a batch that comes with a guard that is
not the producer's any more is refused.
"""

from __future__ import annotations

from itertools import islice

from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

MOST_GUARDS = 10_000
"""Of one partition; of those whose producers never came back the oldest go."""


class Guard:
    """What the coordinator is asked about a producer; batches that wait for the same answer share it.

    ``lowest_sequence`` is that of the first of them. ``begins_at_zero`` says that its client takes a new epoch for every
    transaction (transaction version 2), so that sequence numbers begin anew.
    """

    __slots__ = ("begins_at_zero", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, sequence: int, begins_at_zero: bool) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        self.begins_at_zero = begins_at_zero

    def share(self, producer_epoch: int, sequence: int) -> None:
        """Let one more batch wait for the same answer."""
        if producer_epoch > self.producer_epoch or (
            producer_epoch == self.producer_epoch and sequence < self.lowest_sequence
        ):
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence


NOT_VERIFIED = Guard(-1, -1, False)
"""Comes with batches of transactions about which nobody is asked (transaction.partition.verification.enable=false)."""


class Verifications:
    """The guards of one partition, by producer."""

    __slots__ = ("_guards",)

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    def begin(self, producer_id: int, producer_epoch: int, sequence: int, begins_at_zero: bool) -> Guard:
        """Ask about a producer; returns what its batch has to come with."""
        guard = self._guards.get(producer_id)
        if guard is None:
            self.keep(MOST_GUARDS - 1)
            guard = self._guards[producer_id] = Guard(producer_epoch, sequence, begins_at_zero)
        guard.share(producer_epoch, sequence)
        return guard

    def keep(self, count: int) -> None:
        """Forget the oldest, of which so many at most are left."""
        for producer_id in list(islice(self._guards, max(0, len(self._guards) - count))):
            del self._guards[producer_id]

    def check(self, producer_id: int, guard: Guard | None) -> None:
        """Raises KafkaError INVALID_TXN_STATE where nobody vouches for the transaction any more."""
        if guard is NOT_VERIFIED:
            return
        if guard is None or self._guards.get(producer_id) is not guard:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "no transaction is open that the batch could belong to")

    def check_first_sequence(self, header: BatchHeader) -> None:
        """Raises KafkaError for a batch that cannot be the first of its producer, of which nothing else is known."""
        guard = self._guards.get(header.producer_id)
        if guard is None:
            return
        if header.base_sequence > guard.lowest_sequence:
            # The earlier one was refused for a reason that passes, and comes again: so shall this one, behind it.
            detail = f"sequence number {guard.lowest_sequence} has to come before {header.base_sequence}"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, detail)
        if guard.begins_at_zero and header.base_sequence:
            detail = f"sequence number {header.base_sequence} begins a transaction, expected 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, detail)

    def batch_added(self, producer_id: int) -> None:
        """A batch is in the log: its transaction, if it has one, is open from now on, and its sequence number known."""
        if self._guards:
            self._guards.pop(producer_id, None)

    def marker_added(self, producer_id: int, producer_epoch: int) -> None:
        """A marker is in the log: what was asked before says nothing of what comes after it.

        From transaction version 2 on a marker has the epoch of the producer's next transaction, about which it may have been
        asked already.
        """
        guard = self._guards.get(producer_id)
        if guard is not None and not (guard.begins_at_zero and guard.producer_epoch == producer_epoch):
            del self._guards[producer_id]
