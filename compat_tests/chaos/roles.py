"""The roles of brokers right now: leaders and followers of a partition, the controller, coordinators."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from compat_tests.chaos.cluster import ChaosCluster
from compat_tests.raw_client import ClosedError, RawClient
from kafkacompat.history.client import HistoryTopicNames
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

ANSWER_SECONDS = 3
METADATA_VERSION, COORDINATOR_VERSION, QUORUM_VERSION = 9, 3, 0
GROUP = 0

Answer = TypeVar("Answer")


class Roles:
    """Finds the broker of a role. A broker that does not answer is left out, so that the others decide."""

    def __init__(self, cluster: ChaosCluster, names: HistoryTopicNames) -> None:
        self._cluster = cluster
        self._names = names
        self._finders: dict[str, Callable[[int], int]] = {
            "leader": self.find_leader,
            "follower": self.find_follower,
            "controller": self.find_controller,
            "coordinator": self.find_coordinator,
        }

    def find(self, role: str, number: int) -> int:
        """Return the node that has a role for the partition of that number; any node if none is known."""
        node = self._finders[role](number) if role in self._finders else -1
        nodes = list(self._cluster.brokers)
        return node if node in nodes else nodes[number % len(nodes)]

    def find_leader(self, number: int) -> int:
        """Return the leader of a partition that producers write to, -1 if there is none."""
        partition = self._describe(number)
        return -1 if partition is None else partition.leader_id

    def find_follower(self, number: int) -> int:
        """Return a replica in sync that does not lead a partition, -1 if there is none."""
        partition = self._describe(number)
        followers = [] if partition is None else [node for node in partition.isr_nodes if node != partition.leader_id]
        return followers[number % len(followers)] if followers else -1

    def find_controller(self, _number: int) -> int:
        """Return the controller, with KRaft the leader of the metadata quorum; -1 if there is none."""
        if self._cluster.ensemble is not None:
            answer = self._ask(
                lambda client: client.call(MetadataRequest(topics=[]), MetadataResponse, METADATA_VERSION)
            )
            return -1 if answer is None else answer.controller_id
        log = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        request = DescribeQuorumRequest(topics=[log])
        quorum = self._ask(lambda client: client.call(request, DescribeQuorumResponse, QUORUM_VERSION))
        return -1 if quorum is None or not quorum.topics else quorum.topics[0].partitions[0].leader_id

    def find_coordinator(self, number: int) -> int:
        """Return the coordinator of one of the two groups, -1 if there is none."""
        group = (self._names.members, self._names.copiers)[number % 2]
        request = FindCoordinatorRequest(key=group, key_type=GROUP)
        answer = self._ask(lambda client: client.call(request, FindCoordinatorResponse, COORDINATOR_VERSION))
        return -1 if answer is None else answer.node_id

    def in_sync(self) -> bool:
        """Return whether every replica is in sync."""
        partitions = self._describe_all(None)
        return bool(partitions) and all(
            len(partition.isr_nodes) == len(self._cluster.brokers) for partition in partitions
        )

    def is_out_of_sync(self, node: int) -> bool:
        """Return whether a broker is in no in-sync set."""
        partitions = self._describe_all(None)
        return bool(partitions) and all(node not in partition.isr_nodes for partition in partitions)

    def _describe(self, number: int) -> MetadataResponsePartition | None:
        partitions = self._describe_all([MetadataRequestTopic(name=self._names.records)])
        partitions.sort(key=lambda partition: partition.partition_index)
        return partitions[number % len(partitions)] if partitions else None

    def _describe_all(self, topics: list[MetadataRequestTopic] | None) -> list[MetadataResponsePartition]:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = self._ask(lambda client: client.call(request, MetadataResponse, METADATA_VERSION))
        return [] if answer is None else [partition for topic in answer.topics for partition in topic.partitions]

    def _ask(self, call: Callable[[RawClient], Answer]) -> Answer | None:
        for broker in self._cluster.brokers.values():
            if broker.process is not None:
                with (
                    suppress(ClosedError, OSError),
                    RawClient(broker.port, host=broker.host, timeout_seconds=ANSWER_SECONDS) as client,
                ):
                    return call(client)
        return None
