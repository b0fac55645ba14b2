"""Which brokers get the replicas of new partitions: round-robin, so that leaders spread evenly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError


def place(nodes: Collection[int], count: int, replication_factor: int, rng: Random) -> list[tuple[int, ...]]:
    """Give each of *count* partitions its replicas; the first broker is picked at random.

    Raises KafkaError INVALID_REPLICATION_FACTOR when there are not enough brokers.
    """
    if replication_factor > len(nodes):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{replication_factor} replica(s) of a partition have no room: only {len(nodes)} broker(s) take any",
        )
    ring = sorted(nodes)
    start = rng.randrange(len(ring))
    return [
        tuple(ring[(start + partition + replica) % len(ring)] for replica in range(replication_factor))
        for partition in range(count)
    ]


def check_assignment(replicas: Sequence[int], nodes: Collection[int], replication_factor: int | None) -> None:
    """Refuse replicas that were picked by hand and cannot be; ``replication_factor`` is that of the others.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT.
    """
    if reason := _objection(replicas, nodes, replication_factor):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the assignment {reason}")


def _objection(replicas: Sequence[int], nodes: Collection[int], replication_factor: int | None) -> str | None:
    if not replicas:
        return "has a partition without replicas"
    for node in replicas:
        if node not in nodes:
            return f"names broker {node}, which is not registered"
        if replicas.count(node) > 1:
            return f"names broker {node} twice for one partition"
    if replication_factor is not None and len(replicas) != replication_factor:
        return f"gives one partition {len(replicas)} replica(s) and others {replication_factor}"
    return None


def new_partition(index: int, replicas: Sequence[int]) -> PartitionImage:
    """A partition that is just made: every replica is in sync and the first one leads."""
    return PartitionImage(index, replicas[0], 0, tuple(replicas), tuple(replicas), 0)
