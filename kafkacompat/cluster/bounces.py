"""Brokers that have started again unseen: their registration is younger than the state of a partition that they were part of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twisted.internet.defer import gatherResults

from kafkacompat.metadata.image import NO_LOSSES, BrokerImage, PartitionImage, TopicImage
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.zookeeper.client import ZooKeeper

STATES_AT_ONCE = 1000
"""Partition states that are looked up together."""


async def find_bounced(
    zookeeper: ZooKeeper, brokers: Mapping[int, BrokerImage], topics: Iterable[TopicImage]
) -> set[int]:
    """Return those of *brokers* that registered after the last change of a partition that they lead or are in sync with.

    A controller that saw such a start would have changed the partition's state. Without that, a broker which lost the end of
    its log would lead again in its old leader epoch, and the others would truncate theirs to it. A follower that has lost nothing
    stays in sync without a change of the state. Raises ZooKeeperError.
    """
    states = [
        (Znode.PARTITION_STATE.path(topic=topic.name, partition=partition.partition), members)
        for topic in topics
        if brokers
        for partition in topic.partitions
        if partition.has_state
        if (members := _list_members(partition, brokers))
    ]
    bounced: set[int] = set()
    for first in range(0, len(states), STATES_AT_ONCE):
        some = states[first : first + STATES_AT_ONCE]
        stats = await gatherResults([zookeeper.exists(path) for path, _ in some], consumeErrors=True)
        for (_, members), stat in zip(some, stats, strict=True):
            bounced.update(node for node in members if stat is not None and brokers[node].epoch > stat.mzxid)
    return bounced


def _list_members(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> list[int]:
    """List the brokers whose start changes the partition's state: its leader, and the in-sync replicas that may lack something."""
    return [
        node
        for node in sorted({partition.leader, *partition.in_sync_replicas})
        if node in brokers and (node == partition.leader or brokers[node].losses != NO_LOSSES)
    ]
