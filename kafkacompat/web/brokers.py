"""The brokers of the cluster, and what this one stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.security.acls.model import AclOperation
from kafkacompat.web.topics import MAX_SCANNED, scan_topics
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest
from kafkacompat.wire.apis.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.requests import InternalRequests


@dataclass
class BrokerRow:
    """One broker, with how many partitions it leads, has, and has in sync."""

    node_id: int
    address: str
    rack: str
    leaders: int = 0
    replicas: int = 0
    in_sync: int = 0


class ClusterSummary(NamedTuple):
    """The cluster; ``may_describe`` says whether the user may see what concerns the whole broker."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerRow]
    may_describe: bool


@dataclass
class Totals:
    """What the user may see of the cluster; ``is_cut`` says that there is more."""

    topics: int = 0
    partitions: int = 0
    under_replicated: int = 0
    leaderless: int = 0
    is_cut: bool = False


class DirectoryRow(NamedTuple):
    """A log directory of this broker; sizes are -1 if they are not known."""

    path: str
    is_online: bool
    total_bytes: int
    usable_bytes: int

    @property
    def used_percent(self) -> int:
        """The used part of the volume."""
        return round(100 - 100 * self.usable_bytes / self.total_bytes) if self.total_bytes > 0 else 0


async def describe_cluster(requests: InternalRequests) -> ClusterSummary:
    """Return the brokers, without counts of partitions."""
    response = await requests.send(DescribeClusterRequest(include_cluster_authorized_operations=True))
    brokers = [
        BrokerRow(broker.broker_id, f"{broker.host}:{broker.port}", broker.rack or "") for broker in response.brokers
    ]
    may_describe = bool(response.cluster_authorized_operations >> AclOperation.DESCRIBE & 1)
    brokers.sort(key=lambda broker: broker.node_id)
    return ClusterSummary(response.cluster_id, response.controller_id, brokers, may_describe)


async def count_partitions(requests: InternalRequests, brokers: list[BrokerRow]) -> Totals:
    """Return the totals of the first `MAX_SCANNED` partitions, and count those of each broker."""
    totals = Totals()
    by_id = {broker.node_id: broker for broker in brokers}
    async for topic in scan_topics(requests):
        if totals.partitions >= MAX_SCANNED:
            totals.is_cut = True
            break
        totals.topics += 1
        totals.partitions += len(topic.partitions)
        for partition in topic.partitions:
            totals.leaderless += partition.leader < 0
            totals.under_replicated += len(partition.in_sync) < len(partition.replicas)
            for node_id in partition.replicas:
                if (broker := by_id.get(node_id)) is not None:
                    broker.replicas += 1
                    broker.in_sync += node_id in partition.in_sync
                    broker.leaders += node_id == partition.leader
    return totals


async def list_directories(requests: InternalRequests) -> list[DirectoryRow]:
    """Return the log directories of this broker; none if the user may not see them."""
    response = await requests.send(DescribeLogDirsRequest(topics=[]))
    return [
        DirectoryRow(result.log_dir, not result.error_code, result.total_bytes, result.usable_bytes)
        for result in response.results
    ]
