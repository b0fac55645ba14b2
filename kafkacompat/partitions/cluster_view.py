"""What a partition needs of the cluster when it has other replicas: who lives, and who commits a new in-sync set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafkacompat.metrics.partitions import InSyncCounts
from kafkacompat.partitions.leadership import BrokerEpochs

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.partitions.partition_state import PartitionState
    from kafkacompat.partitions.replication_quota import ReplicationQuota


class CommittedInSync(NamedTuple):
    """A partition's in-sync set as the controller has committed it."""

    in_sync: Collection[int]
    leader_epoch: int
    partition_epoch: int


class InSyncUpdates(Protocol):
    """Carries proposed in-sync sets to the controller (AlterPartition, KIP-497)."""

    def propose(
        self, partition: PartitionState, new_set: frozenset[int], leader_epoch: int, partition_epoch: int
    ) -> Deferred[CommittedInSync]:
        """Propose a partition's in-sync set; fires with the committed one.

        ``partition.log`` has the topic and the index, ``partition.leading.list_broker_epochs(new_set)`` the broker
        epochs. Fails with the controller's KafkaError. After any other failure `Partition.check_in_sync` proposes the
        same set again.
        """


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster, as the partitions of one broker see it.

    ``node_id`` is this broker's id, ``lag_time_max_ms`` is replica.lag.time.max.ms, ``leader_quota`` the throttle of what
    this broker sends to followers that are not in sync (KIP-73). ``changes`` counts the changes of in-sync sets.
    """

    node_id: int
    lag_time_max_ms: int
    broker_epochs: BrokerEpochs
    updates: InSyncUpdates
    leader_quota: ReplicationQuota | None = None
    changes: InSyncCounts = field(default_factory=InSyncCounts)
