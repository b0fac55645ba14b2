"""The brokers that one test uses together, and requests to the right one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater

from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.testing.errors import BrokerError
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.metadata.image import TopicImage
    from kafkacompat.testing.node import Node

PATIENCE_S = 10.0
"""Time for which a helper repeats a request that fails for the moment, as during an election."""
POLL_S = 0.005

TRANSIENT_ERRORS = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Errors after which clients repeat a request."""


class Nodes:
    """The brokers by id. Use the methods in the thread of the brokers; *reactor* is that of the thread."""

    def __init__(self, reactor: Any, nodes: Iterable[Node]) -> None:
        self.reactor = reactor
        self.by_id = {node.node_id: node for node in nodes}

    @property
    def running(self) -> list[Node]:
        """The brokers that run; raises BrokerError if none does."""
        running = [node for node in self.by_id.values() if node.is_running]
        if not running:
            raise BrokerError("no broker runs any more: all were stopped or killed")
        return running

    async def end(self) -> None:
        """Stop all brokers at the end of their test."""
        nodes = list(self.by_id.values())
        for node in nodes:
            await node.disconnect_clients()
        if all(node.folder is None for node in nodes) and len(nodes) > 1:
            # Nothing of a cluster in memory has to be handed over.
            await gatherResults([Deferred.fromCoroutine(node.kill()) for node in nodes])
        for node in reversed(nodes):
            await node.stop()

    def find_topic(self, name: str) -> TopicImage | None:
        """Return a topic as a broker knows it; None if it does not exist."""
        return self.running[0].broker.metadata.image.topics.get(name)

    def find_leader(self, topic: str, partition: int) -> Node | None:
        """Return the broker that leads a partition; None if there is none, or no such partition."""
        image = self.find_topic(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        node = self.by_id.get(image.partitions[partition].leader)
        return node if node is not None and node.is_running else None

    async def find_coordinator(self, group: str) -> Node | None:
        """Return the broker that coordinates a group; None while there is none."""
        request = FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])
        (coordinator,) = (await self.running[0].request(request)).coordinators
        node = self.by_id.get(coordinator.node_id)
        return node if node is not None and node.is_running else None

    async def wait_until(self, check: Callable[[], Awaitable[bool]], within_s: float) -> bool:
        """Call *check* until it returns True, for at most *within_s* seconds; returns its last result."""
        deadline = self.reactor.seconds() + within_s
        while not await check():
            if self.reactor.seconds() >= deadline:
                return False
            await deferLater(self.reactor, POLL_S)
        return True


async def is_in_sync(nodes: Nodes, broker_id: int) -> bool:
    """Return whether all brokers name a broker as in sync for all of its partitions that have a leader."""
    return all(
        broker_id in partition.in_sync_replicas
        for node in nodes.running
        for topic in node.broker.metadata.image.topics.values()
        for partition in topic.partitions
        if broker_id in partition.replicas and partition.leader != NO_LEADER
    )
