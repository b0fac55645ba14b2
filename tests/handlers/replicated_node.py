"""Node 1 of three, whose followers are simulated: a test sends their requests."""

from __future__ import annotations

from typing import Any

from kafkacompat.metadata.image import BrokerImage, ImageHolder, MetadataImage, PartitionImage, TopicImage
from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.fakes.in_sync_updates import ManualInSyncUpdates
from tests.handlers.data_node import EPOCH, T_ID, DataNode, make_batch

LAG_MS = 30_000
LEADER_EPOCH = EPOCH + 1
BROKER_EPOCHS = {1: 101, 2: 102, 3: 103}


class ReplicatedNode(DataNode):
    """Leads t-0 in LEADER_EPOCH with the replicas 1, 2 and 3; the other partitions have one replica."""

    def __init__(self, config: LogConfig | None = None, *, in_sync: tuple[int, ...] = (1, 2, 3), **given: Any) -> None:
        super().__init__(config, **given)
        self.updates = ManualInSyncUpdates()
        self.broker_epochs = dict(BROKER_EPOCHS)
        self.view = ClusterView(1, LAG_MS, self.broker_epochs.get, self.updates)
        self.services.metadata = ImageHolder()
        self.publish(leader=1, leader_epoch=LEADER_EPOCH)
        self.lead(in_sync=in_sync)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find("t", 0)

    def publish(self, *, leader: int, leader_epoch: int) -> None:
        """Let the metadata name a leader of t-0."""
        brokers = {
            number: BrokerImage(number, f"rack-{number}", {"PLAINTEXT": (f"host-{number}", 9000 + number)}, epoch)
            for number, epoch in BROKER_EPOCHS.items()
        }
        image = PartitionImage(0, leader, leader_epoch, (1, 2, 3), (1, 2, 3), 1)
        topic = TopicImage("t", T_ID, (image,))
        self.services.metadata.publish(MetadataImage(brokers=brokers).with_topics({"t": topic}))

    def lead(
        self,
        *,
        epoch: int = LEADER_EPOCH,
        replicas: tuple[int, ...] = (1, 2, 3),
        in_sync: tuple[int, ...] = (1, 2, 3),
        partition_epoch: int = 1,
    ) -> bool:
        return self.partition.become_leader(self.view, epoch, replicas, in_sync, partition_epoch, self.node.now_ms)

    def follow(self, leader: int = 2, epoch: int = LEADER_EPOCH + 1) -> None:
        """Let another broker be the leader of t-0."""
        self.publish(leader=leader, leader_epoch=epoch)
        assert self.partition.become_follower(leader, epoch)

    def fetch_request(
        self,
        offset: int,
        *,
        replica: int,
        version: int = 17,
        broker_epoch: int | None = None,
        epoch: int = LEADER_EPOCH,
        wait_ms: int = 0,
        **kw: Any,
    ) -> FetchRequest:
        """A Fetch of t-0 by a replica."""
        wanted = FetchPartition(
            **{
                "partition": 0,
                "fetch_offset": offset,
                "partition_max_bytes": 1_000_000,
                "current_leader_epoch": epoch,
                "log_start_offset": 0,
                **kw,
            }
        )
        registered = BROKER_EPOCHS.get(replica, -1) if broker_epoch is None else broker_epoch
        return FetchRequest(
            replica_id=replica if version < 15 else -1,
            replica_state=ReplicaState(replica_id=replica, replica_epoch=registered)
            if version >= 15
            else ReplicaState(),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=10_000_000,
            topics=[FetchTopic(topic="t", topic_id=T_ID, partitions=[wanted])],
        )

    def fetch(self, offset: int, *, replica: int, version: int = 17, **kw: Any) -> PartitionData:
        """Return the response to a replica that fetches t-0 from an offset."""
        request = self.fetch_request(offset, replica=replica, version=version, **kw)
        response = self.ask(request, FetchResponse, version)
        return response.responses[0].partitions[0]

    def write(self, count: int = 1) -> None:
        """Append batches of one record to t-0, past the handlers."""
        for _ in range(count):
            self.append("t", 0, make_batch())
