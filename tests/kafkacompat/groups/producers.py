"""A coordinator, and transactional producers that commit offsets to it."""

from __future__ import annotations

import struct
from typing import Any

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import LogProducer
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.commits import FetchedOffsets, OffsetToCommit
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.kafkacompat.groups.support import GROUP, TOPIC_ID, World, take_response

PRODUCER = 9


def make_marker(*, is_commit: bool, producer_id: int = PRODUCER, at_ms: int = 0) -> bytes:
    """The batch that ends a transaction."""
    control = (at_ms, struct.pack(">hh", 0, is_commit), struct.pack(">hi", 0, 0), ())
    return build_batch([control], producer_id=producer_id, producer_epoch=0, transactional=True, control=True)


class LateLog(FakeCoordinatorLog):
    """A log that appends each batch at once and reports it later, as if it waited for the disk; ``late`` has the unreported ones."""

    def __init__(self, partition_count: int = 4) -> None:
        super().__init__(partition_count)
        self.late: list[Deferred[None]] = []

    def append(self, partition: int, batch: bytes, guard: object = None) -> Deferred[None]:
        appended = super().append(partition, batch)
        if self.refuse_with is not None:
            return appended
        self.late.append(Deferred())
        return self.late[-1]

    def tell(self, index: int = 0) -> None:
        """Report one of the late appends."""
        self.late.pop(index).callback(None)


class ProducerWorld(World):
    """See `World`. Producers differ by their ids."""

    def commit_in_transaction(
        self,
        offset: int = 7,
        producer_id: int = PRODUCER,
        *,
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        group: str = GROUP,
        topic: str = "t",
        partition: int = 0,
        topic_id: bytes = TOPIC_ID,
        metadata: str | None = "",
    ) -> list[ErrorCode] | Deferred[list[ErrorCode]]:
        offset_to_commit = OffsetToCommit(topic, topic_id, partition, offset, 0, metadata)
        producer = LogProducer(producer_id, 0, NOT_VERIFIED)
        identity = SenderIdentity(member_id, instance, generation)
        return self.coordinator.commit_in_transaction(group, identity, producer, [offset_to_commit])

    def end(self, producer_id: int = PRODUCER, *, is_commit: bool = True, group: str = GROUP) -> Deferred[ErrorCode]:
        """Write a marker to the group's partition."""
        partition = self.coordinator.partition_for(group)
        batch = make_marker(is_commit=is_commit, producer_id=producer_id)
        return self.coordinator.end_transaction(
            partition, producer_id, is_commit, lambda: self.log.append(partition, batch)
        )

    def is_unstable(self, *, group: str = GROUP, topic: str = "t", partition: int = 0) -> bool:
        """Return whether the partition has a pending offset."""
        fetched: FetchedOffsets = take_response(self.coordinator.fetch_offsets(group))
        return (topic, partition) in fetched.offsets.pending

    def open_transactions(self) -> int:
        """The number of open transactions with offsets, in all partitions."""
        return sum(len(transactions) for transactions in self.coordinator._registry.transactions.values())

    def again(self, **settings: Any) -> ProducerWorld:
        """Another coordinator on the same log, with everything loaded."""
        other = ProducerWorld(self.log, **settings)
        other.turn(100)
        return other
