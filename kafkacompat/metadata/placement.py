"""The placement of new partitions' replicas on brokers: round-robin, so that leaders spread evenly."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError


def place_replicas(nodes: Collection[int], count: int, replication_factor: int, rng: Random) -> list[tuple[int, ...]]:
    """Choose the replicas of *count* partitions; the first broker is random.

    Raises KafkaError INVALID_REPLICATION_FACTOR when there are not enough brokers.
    """
    if replication_factor > len(nodes):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"a partition cannot have {replication_factor} replica(s): only {len(nodes)} broker(s) accept replicas",
        )
    ring = sorted(nodes)
    start = rng.randrange(len(ring))
    return [
        tuple(ring[(start + partition + replica) % len(ring)] for replica in range(replication_factor))
        for partition in range(count)
    ]


def check_assignment(replicas: Sequence[int], nodes: Collection[int], replication_factor: int | None) -> None:
    """Reject an impossible choice of a partition's replicas; ``replication_factor`` is that of the other partitions.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT.
    """
    if reason := _find_objection(replicas, nodes, replication_factor):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the assignment {reason}")


def _find_objection(replicas: Sequence[int], nodes: Collection[int], replication_factor: int | None) -> str | None:
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
    """Build a new partition: every replica is in sync, and the first one leads."""
    return PartitionImage(index, replicas[0], 0, tuple(replicas), tuple(replicas), 0)
