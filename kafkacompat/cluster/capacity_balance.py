"""The controller evens out the disks of a group of brokers: replicas of instances leave brokers that are nearly full.

The limit of an instance holds for all brokers together. If the disks of one broker are full before, its part moves to the others.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from twisted.internet.defer import Deferred, FirstError, gatherResults

from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.tenancy.capacity import BrokerDisk, CapacityMove, StoredReplica, plan_capacity_moves
from kafkacompat.tenancy.placement import list_topics_of_group
from kafkacompat.timers import Clock, yield_in_turns
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

if TYPE_CHECKING:
    from kafkacompat.cluster.active_controller import ActiveController
    from kafkacompat.cluster.controller_link import BrokerRequests
    from kafkacompat.config.broker_groups import BrokerGroups
    from kafkacompat.metadata.image import MetadataImage, PartitionImage

log = logging.getLogger(__name__)

PURPOSE = "capacity"
TIMEOUT_S = 30.0
MAX_MOVES = 5
"""Replicas that leave the brokers of one group at a time. They have no throttle of their own."""
PARTITIONS_A_REQUEST = 1000
"""A response that describes this many logs is read in one turn."""

Sizes = dict[TopicPartition, int]


class BrokerFigures(NamedTuple):
    """The disks of one broker, and the bytes of its replicas."""

    disk: BrokerDisk
    sizes: Sizes


class CapacityBalance:
    """Plans and starts the moves of one controller; ``above`` is the used part of a broker's disks from which replicas leave it."""

    def __init__(self, active: ActiveController, brokers: BrokerRequests, clock: Clock, above: float) -> None:
        self._active = active
        self._brokers = brokers
        self._clock = clock
        self._above = above

    async def even_out(self, groups: BrokerGroups) -> None:
        """Start moves in each group that has a broker with nearly full disks."""
        for group, node_ids in groups.items():
            try:
                await self._even_out_group(group, node_ids)
            except Exception as problem:
                # A broker that does not answer holds up no other group.
                log.warning("Cannot even out the disks of the group %s: %s", group, problem)

    async def _even_out_group(self, group: str, node_ids: Collection[int]) -> None:
        image = self._active.image
        live = sorted(image.brokers.keys() & node_ids)
        partitions = await self._list_partitions(image, group, live)
        if len(live) < 2 or any(partition.is_reassigned for partition in partitions.values()):
            return
        figures = await self._read_figures(live, partitions)
        if all(broker.disk.used_bytes < self._above * broker.disk.size_bytes for broker in figures.values()):
            return
        moves = plan_capacity_moves(
            {node_id: broker.disk for node_id, broker in figures.items()},
            _list_stored(partitions, figures),
            live,
            racks=_find_racks(image, live),
            max_moves=MAX_MOVES,
        )
        await self._start_moves(group, moves, partitions)

    async def _list_partitions(
        self, image: MetadataImage, group: str, live: Collection[int]
    ) -> dict[TopicPartition, PartitionImage]:
        """List the partitions of the group's instances that are on its live brokers only."""
        partitions: dict[TopicPartition, PartitionImage] = {}
        async for name in yield_in_turns(self._clock, list_topics_of_group(image, group)):
            for partition in image.topics[name].partitions:
                if set(partition.replicas) <= set(live):
                    partitions[TopicPartition(name, partition.partition)] = partition
        return partitions

    async def _read_figures(
        self, live: Sequence[int], partitions: Mapping[TopicPartition, PartitionImage]
    ) -> dict[int, BrokerFigures]:
        reading = [Deferred.fromCoroutine(self._read_broker(node_id, partitions)) for node_id in live]
        try:
            figures: list[BrokerFigures] = await gatherResults(reading, consumeErrors=True)
        except FirstError as problem:
            # The text of FirstError is no sentence, that of its cause is one.
            problem.subFailure.raiseException()
        return dict(zip(live, figures, strict=True))

    async def _read_broker(self, node_id: int, partitions: Mapping[TopicPartition, PartitionImage]) -> BrokerFigures:
        held = [key for key, partition in partitions.items() if node_id in partition.replicas]
        disk, sizes = BrokerDisk(0, 0), Sizes()
        for request in _build_requests(held):
            response: DescribeLogDirsResponse = await self._brokers.send(node_id, PURPOSE, request, TIMEOUT_S)
            disk = _read_response(response, sizes)
        return BrokerFigures(disk, sizes)

    async def _start_moves(
        self, group: str, moves: Sequence[CapacityMove], planned: Mapping[TopicPartition, PartitionImage]
    ) -> None:
        image = self._active.image
        wanted: dict[TopicPartition, Sequence[int]] = {}
        for move in moves:
            key = TopicPartition(move.topic, move.partition)
            present = image.partition(*key)
            # Others may have reassigned the partition in the meantime.
            if present is not None and present.replicas == planned[key].replicas:
                wanted[key] = move.replicas
        if not wanted:
            return
        results = await self._active.reassign_partitions(wanted)
        refused = [problem for problem in results.values() if problem is not None]
        size_bytes = sum(move.size_bytes for move in moves)
        log.info("Evening out the disks of the group %s: %d replicas, %d bytes", group, len(wanted), size_bytes)
        if refused:
            log.warning("%d of these moves are refused, such as: %s", len(refused), refused[0].detail)


def _build_requests(held: Sequence[TopicPartition]) -> Iterator[DescribeLogDirsRequest]:
    """Yield requests for the sizes of partitions, one at least: each response has the size of the disks."""
    for start in range(0, max(len(held), 1), PARTITIONS_A_REQUEST):
        topics: dict[str, list[int]] = defaultdict(list)
        for key in held[start : start + PARTITIONS_A_REQUEST]:
            topics[key.topic].append(key.partition)
        yield DescribeLogDirsRequest(
            topics=[DescribableLogDirTopic(topic=topic, partitions=indexes) for topic, indexes in topics.items()]
        )


def _read_response(response: DescribeLogDirsResponse, sizes: Sizes) -> BrokerDisk:
    """Add the sizes of a response, and return the disks that it describes; those whose size is unknown do not count."""
    used_bytes = size_bytes = 0
    for directory in response.results:
        if directory.total_bytes > 0:
            used_bytes += directory.total_bytes - directory.usable_bytes
            size_bytes += directory.total_bytes
        for topic in directory.topics:
            for described in topic.partitions:
                if not described.is_future_key:
                    sizes[TopicPartition(topic.name, described.partition_index)] = described.partition_size
    return BrokerDisk(used_bytes, size_bytes)


def _list_stored(
    partitions: Mapping[TopicPartition, PartitionImage], figures: Mapping[int, BrokerFigures]
) -> list[StoredReplica]:
    return [
        StoredReplica(
            key.topic,
            key.partition,
            partition.replicas,
            max(figures[node_id].sizes.get(key, 0) for node_id in partition.replicas),
        )
        for key, partition in partitions.items()
    ]


def _find_racks(image: MetadataImage, live: Iterable[int]) -> Mapping[int, str | None] | None:
    racks = {node_id: image.brokers[node_id].rack for node_id in live}
    return racks if all(racks.values()) else None
