"""The sequence numbers of an idempotent producer, by the rules of the Java client's TransactionManager (KIP-98, KIP-360)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkacompat.history.events import HistoryPartition
from kafkacompat.storage.producers.producer import sequence_after
from kafkacompat.wire.errors import ErrorCode
from tests.simulation.clients.batches import NO_IDENTITY, NO_SEQUENCE, Batch, ProducerIdentity
from tests.simulation.clients.errors import RETRIABLE


@dataclass
class _PartitionSequences:
    """The sequence numbers of one partition; ``in_flight`` are the batches that have one and are not done, in their order."""

    identity: ProducerIdentity = NO_IDENTITY
    next_sequence: int = 0
    last_acknowledged: int = NO_SEQUENCE
    last_offset: int = -1
    in_flight: list[Batch] = field(default_factory=list)

    def is_next(self, sequence: int) -> bool:
        return sequence == sequence_after(self.last_acknowledged, 1) if self.last_acknowledged >= 0 else sequence == 0

    def restart(self, identity: ProducerIdentity) -> None:
        """Begin at 0 under an identity, also with the batches that are in flight."""
        self.identity, self.next_sequence, self.last_acknowledged = identity, 0, NO_SEQUENCE
        for batch in self.in_flight:
            batch.identity, batch.sequence, batch.is_sequence_reset = identity, self.next_sequence, True
            self.next_sequence = batch.next_sequence


class Sequences:
    """The sequence numbers of all partitions, and when the producer takes a new epoch by itself.

    A sequence number is *unresolved* after the delivery of a repeated batch timed out: nobody knows whether the batch is in the log.
    Nothing new is sent to its partition until the batches in flight are done. Then the epoch is bumped, unless a later batch succeeded.
    ``needs_bump`` is the request for a new epoch, which a transactional producer answers by aborting its transaction.
    """

    def __init__(self, *, is_transactional: bool = False) -> None:
        self.identity = NO_IDENTITY
        self.needs_bump = False
        self.bumps = 0
        self._is_transactional = is_transactional
        self._partitions: dict[HistoryPartition, _PartitionSequences] = {}
        self._unresolved: dict[HistoryPartition, int] = {}
        self._to_restart: dict[HistoryPartition, None] = {}

    def begin(self, identity: ProducerIdentity) -> None:
        """Continue under the identity that InitProducerId or EndTxn has returned."""
        if self._is_transactional and identity != self.identity:
            self._partitions.clear()
            self._unresolved.clear()
            self._to_restart.clear()
            self.needs_bump = False
        self.identity = identity

    def may_send(self, batch: Batch) -> bool:
        """Return whether it is the turn of a partition's first batch that waits."""
        partition = self._find(batch.place)
        if not batch.has_sequence and (
            batch.place in self._unresolved or (partition.in_flight and partition.identity != self.identity)
        ):
            return False
        # The earliest batch of those in flight is repeated before the later ones.
        return not (batch.has_sequence and partition.in_flight and partition.in_flight[0] is not batch)

    def assign(self, batch: Batch) -> None:
        """Give a batch the next sequence number."""
        partition = self._find(batch.place)
        if partition.identity != self.identity and not partition.in_flight:
            partition.restart(self.identity)
        batch.identity, batch.sequence = partition.identity, partition.next_sequence
        batch.is_transactional = self._is_transactional
        partition.next_sequence = batch.next_sequence
        partition.in_flight.append(batch)

    def complete(self, batch: Batch, offset: int) -> None:
        """A batch is in the log."""
        partition = self._find(batch.place)
        if batch.identity == partition.identity:
            partition.last_acknowledged = max(partition.last_acknowledged, batch.last_sequence)
            partition.last_offset = max(partition.last_offset, offset)
        partition.in_flight.remove(batch)

    def fail(self, batch: Batch, code: int, *, is_rejected: bool) -> None:
        """A batch is given up. *is_rejected*: the broker refused it, so its sequence number is free."""
        partition = self._find(batch.place)
        partition.in_flight.remove(batch)
        if not is_rejected:
            if batch.is_repeated:
                self._unresolved[batch.place] = max(batch.next_sequence, self._unresolved.get(batch.place, 0))
        elif not self._is_transactional:
            self._request_restart(batch.place)
        elif code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.identity == partition.identity:
            self._close_gap(partition, batch)

    def should_retry(self, batch: Batch, code: int, log_start_offset: int) -> bool:
        """Return whether a batch is sent again after an error, and ask for a new epoch if it needs one."""
        place, partition = batch.place, self._find(batch.place)
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset < 0 or batch.is_sequence_reset:
                return True
            if partition.last_offset < log_start_offset:
                # The records before were deleted, and the broker's knowledge of the producer with them.
                if self._is_transactional:
                    partition.restart(self.identity)
                else:
                    self._request_restart(place)
                return True
            if not self._is_transactional:
                self._request_restart(place)
                return True
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_unresolved = place in self._unresolved
            if not is_unresolved and (batch.is_sequence_reset or not partition.is_next(batch.sequence)):
                return True
            if not self._is_transactional:
                if not is_unresolved or self._unresolved[place] == batch.sequence:
                    self._request_restart(place)
                return True
        return code in RETRIABLE

    def resolve(self) -> bool:
        """Look at the unresolved partitions whose batches are all done; return whether a new epoch is needed for one."""
        is_lost = False
        for place in [place for place in self._unresolved if not self._find(place).in_flight]:
            del self._unresolved[place]
            partition = self._find(place)
            if not partition.is_next(partition.next_sequence):
                is_lost = True
        return is_lost

    def bump(self) -> None:
        """Take the next epoch of an idempotent producer, which needs no request."""
        self.needs_bump = False
        self.bumps += 1
        self.identity = self.identity._replace(epoch=self.identity.epoch + 1)
        for place in self._to_restart:
            self._find(place).restart(self.identity)
            self._unresolved.pop(place, None)
        self._to_restart.clear()

    def _request_restart(self, place: HistoryPartition) -> None:
        self.needs_bump = True
        self._to_restart[place] = None

    def _find(self, place: HistoryPartition) -> _PartitionSequences:
        return self._partitions.setdefault(place, _PartitionSequences())

    @staticmethod
    def _close_gap(partition: _PartitionSequences, failed: Batch) -> None:
        """Move the batches in flight after a rejected one into its place.

        The Java client does so even if the rejected batch was sent before and may be in the log. The transaction is aborted anyway.
        """
        count = len(failed.values)
        is_doubtful = failed.is_repeated or failed.has_doubtful_sequence
        partition.next_sequence -= count
        for batch in partition.in_flight:
            if batch.sequence > failed.sequence:
                batch.sequence -= count
                batch.is_sequence_reset = True
                batch.has_doubtful_sequence |= is_doubtful
