"""A broker in a cluster: its metadata is in ZooKeeper, and it obeys the cluster's controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.cluster.member import ClusterMember

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.wire.schema import Request


class ReplicaSender:
    """Sends the requests of one fetcher, on connections of its own."""

    def __init__(self, member: ClusterMember, number: int) -> None:
        self._member = member
        self._purpose = f"replica fetcher {number}"

    def send(self, node_id: int, request: Request, timeout_s: float) -> Deferred[Any]:
        """See replication.follower.Sender."""
        return self._member.brokers.send(node_id, self._purpose, request, timeout_s)


class ClusterNode:
    """The metadata side of a broker in a cluster; the counterpart of `Standalone`."""
