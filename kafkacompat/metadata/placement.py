"""The placement of new partitions' replicas on brokers, as Kafka's tools and its ZooKeeper controller place them.

The first replicas go round the brokers from a random start, so that leaders spread evenly. The other replicas follow at a shift
that grows with each round, so that the followers of a broker's partitions spread, too. With racks, the brokers are arranged so
that racks alternate, and a partition's replicas go to different racks while there are any left (KIP-36).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from random import Random
from typing import NamedTuple

from kafkacompat.metadata.image import NO_LEADER, PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError


class PlacementStart(NamedTuple):
    """Where a placement begins: the first partition's number, its broker's position and the shift of the other replicas."""

    partition: int
    position: int
    shift: int


def place_replicas(
    racks: Mapping[int, str | None], count: int, replication_factor: int, rng: Random
) -> list[tuple[int, ...]]:
    """Choose the replicas of a new topic's *count* partitions; *racks* gives each broker's rack, None without one.

    Raises KafkaError INVALID_REPLICATION_FACTOR when there are not enough brokers, UNKNOWN_SERVER_ERROR (as Kafka does) when only
    some of them have a rack.
    """
    _check_brokers(racks, replication_factor)
    start = PlacementStart(0, rng.randrange(len(racks)), rng.randrange(len(racks)))
    return _place_from(start, racks, count, replication_factor)


def place_added_replicas(
    racks: Mapping[int, str | None], existing: Sequence[Sequence[int]], count: int
) -> list[tuple[int, ...]]:
    """Choose the replicas of *count* partitions that are added to the *existing* ones of a topic.

    The placement goes on from the first partition's first replica, so it is the same at each call. The replication factor is
    that of the first partition. Raises as `place_replicas`.
    """
    _check_brokers(racks, len(existing[0]))
    nodes = sorted(racks)
    position = next((index for index, node in enumerate(nodes) if node >= existing[0][0]), 0)
    return _place_from(PlacementStart(len(existing), position, position), racks, count, len(existing[0]))


def _check_brokers(racks: Mapping[int, str | None], replication_factor: int) -> None:
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a partition cannot have {replication_factor} replica(s): only {len(racks)} broker(s) accept replicas",
        )
    without = sorted(node for node, rack in racks.items() if rack is None)
    if without and len(without) < len(racks):
        names = ", ".join(str(node) for node in without)
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"set broker.rack on every broker or on none: broker(s) {names} have no rack",
        )


def _place_from(
    start: PlacementStart, racks: Mapping[int, str | None], count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    ring = _alternate_racks(racks)
    # The followers of one partition are a rack's width further on for each growth of the shift.
    width = len(set(racks.values()))
    shift = start.shift
    placed = []
    for partition in range(start.partition, start.partition + count):
        if partition and partition % len(ring) == 0:
            shift += 1
        first = (partition + start.position) % len(ring)
        placed.append(_choose_replicas(ring, racks, first, shift * width, replication_factor))
    return placed


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Arrange the brokers so that neighbours are in different racks; without racks they are in the order of their ids."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for node in sorted(racks):
        by_rack[racks[node] or ""].append(node)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    return [row[index] for index in range(max(map(len, rows))) for row in rows if index < len(row)]


def _choose_replicas(
    ring: Sequence[int], racks: Mapping[int, str | None], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    """Choose one partition's replicas: the broker at *first*, then the brokers after it, each of a new rack while there is one."""
    chosen = [ring[first]]
    used = {racks[ring[first]]}
    rack_count = len(set(racks.values()))
    step = 0
    while len(chosen) < replication_factor:
        node = ring[(first + 1 + (shift + step) % (len(ring) - 1)) % len(ring)]
        step += 1
        if node not in chosen and (racks[node] not in used or len(used) == rack_count):
            chosen.append(node)
            used.add(racks[node])
    return tuple(chosen)


def check_assignment(
    replicas: Sequence[int],
    nodes: Collection[int],
    replication_factor: int | None,
    objection: str = "which is not registered",
) -> None:
    """Reject an impossible choice of a partition's replicas; ``replication_factor`` is that of the other partitions.

    *objection* says what is wrong with a broker that is not in *nodes*. Raises KafkaError INVALID_REPLICA_ASSIGNMENT.
    """
    if reason := _find_objection(replicas, nodes, replication_factor, objection):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the assignment {reason}")


def _find_objection(
    replicas: Sequence[int], nodes: Collection[int], replication_factor: int | None, objection: str
) -> str | None:
    if not replicas:
        return "has a partition without replicas"
    for node in replicas:
        if node not in nodes:
            return f"names broker {node}, {objection}"
        if replicas.count(node) > 1:
            return f"names broker {node} twice for one partition"
    if replication_factor is not None and len(replicas) != replication_factor:
        return f"gives one partition {len(replicas)} replica(s) and others {replication_factor}"
    return None


def new_partition(index: int, replicas: Sequence[int], online: Container[int]) -> PartitionImage:
    """Build a new partition: the first replica that is *online* leads, and the replicas that are online are in sync.

    While no replica is online, the partition has no state: no leader, no in-sync set, and -1 for both epochs.
    """
    in_sync = tuple(node for node in replicas if node in online)
    if not in_sync:
        return PartitionImage(index, NO_LEADER, -1, tuple(replicas), (), -1)
    return PartitionImage(index, in_sync[0], 0, tuple(replicas), in_sync, 0)
