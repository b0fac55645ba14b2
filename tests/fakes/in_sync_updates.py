"""A controller that takes proposed in-sync sets, and answers them when a test says so."""

from __future__ import annotations

from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.partitions.cluster_view import CommittedInSync
from kafkacompat.partitions.partition_state import PartitionState
from kafkacompat.wire.errors import ErrorCode, KafkaError


class Proposal(NamedTuple):
    """A proposed set, the epochs it came with, and its answer."""

    new_set: frozenset[int]
    leader_epoch: int
    partition_epoch: int
    broker_epochs: dict[int, int]
    answer: Deferred[CommittedInSync]


class ManualInSyncUpdates:
    """Implements `InSyncUpdates`; ``waiting`` are the proposals without an answer."""

    def __init__(self) -> None:
        self.waiting: list[Proposal] = []

    def propose(
        self, partition: PartitionState, new_set: frozenset[int], leader_epoch: int, partition_epoch: int
    ) -> Deferred[CommittedInSync]:
        """See InSyncUpdates.propose."""
        assert partition.leading is not None
        epochs = partition.leading.list_broker_epochs(new_set)
        self.waiting.append(Proposal(new_set, leader_epoch, partition_epoch, epochs, Deferred()))
        return self.waiting[-1].answer

    def proposed(self) -> list[list[int]]:
        """The sets that are proposed and not answered."""
        return [sorted(proposal.new_set) for proposal in self.waiting]

    def commit(self, *, leader_epoch: int | None = None) -> None:
        """Commit the first proposal under the next partition epoch."""
        proposal = self.waiting.pop(0)
        epoch = proposal.leader_epoch if leader_epoch is None else leader_epoch
        proposal.answer.callback(CommittedInSync(proposal.new_set, epoch, proposal.partition_epoch + 1))

    def refuse(self, code: ErrorCode | None = None) -> None:
        """Refuse the first proposal with a code; without one its request is lost."""
        problem = ConnectionError("the controller is gone") if code is None else KafkaError(code)
        self.waiting.pop(0).answer.errback(problem)
