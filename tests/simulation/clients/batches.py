"""A producer's batches: values for one partition that are sent, and repeated, together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafkacompat.history.events import HistoryPartition
from kafkacompat.storage.producers.producer import sequence_after
from kafkacompat.wire.record_batch import build_batch

NO_SEQUENCE = -1


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch; -1 for none."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def is_valid(self) -> bool:
        return self.producer_id >= 0


NO_IDENTITY = ProducerIdentity()


class BatchValue(NamedTuple):
    """A value: the producer's number of it, its text, and its time in ms."""

    number: int
    text: str
    timestamp_ms: int


@dataclass(eq=False)
class Batch:
    """Values for one partition. A batch has a sequence number from the first time that it is sent."""

    place: HistoryPartition
    order: int
    """The batch's number among all batches of its producer."""
    created_at: float
    values: list[BatchValue] = field(default_factory=list)
    identity: ProducerIdentity = NO_IDENTITY
    sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    attempts: int = 0
    retry_at: float = 0.0
    """The time from which it may be sent again, unless the partition has another leader epoch than ``sent_in_epoch``."""
    sent_in_epoch: int = -1
    is_repeated: bool = False
    """Whether it was sent and waits to be sent again."""
    is_sequence_reset: bool = False
    """Whether it got another sequence number since it was sent last."""
    has_doubtful_sequence: bool = False
    """Whether it got the sequence number of a batch that may be in the log: its acknowledgement may be that of the other batch."""
    is_done: bool = False

    @property
    def has_sequence(self) -> bool:
        return self.sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return sequence_after(self.sequence, len(self.values) - 1)

    @property
    def next_sequence(self) -> int:
        return sequence_after(self.sequence, len(self.values))

    def encode(self, codec: int) -> bytes:
        """Encode the batch as the format's version 2."""
        records = [(value.timestamp_ms, None, value.text.encode(), ()) for value in self.values]
        return build_batch(
            records,
            codec=codec,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequence,
            transactional=self.is_transactional,
        )
