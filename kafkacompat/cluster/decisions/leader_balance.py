"""Elections on request (ElectLeaders, KIP-460) and the moves of leadership back to the preferred replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum

from kafkacompat.cluster.decisions.elections import elect_offline, elect_preferred
from kafkacompat.cluster.decisions.situation import (
    PartitionResults,
    Presence,
    Situation,
    TopicPartition,
    change_partitions,
    find_partition,
    list_partitions,
)
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError


class ElectionType(IntEnum):
    """The election types of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


NO_CANDIDATE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    draft: MetadataDraft, situation: Situation, kind: ElectionType, wanted: Iterable[TopicPartition] | None = None
) -> PartitionResults:
    """Elect leaders for the given partitions, or for all; a request for all returns only those that needed an election.

    An unclean election is allowed whatever the topic's configuration says. Errors: UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_TOPIC_EXCEPTION (the topic is being deleted), ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
    ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    keys = [key for key, _ in list_partitions(draft)] if wanted is None else list(dict.fromkeys(wanted))
    elections = _Elections(draft, situation, kind)
    results: dict[TopicPartition, KafkaError | None] = {}
    electable: list[TopicPartition] = []
    for key in keys:
        problem = elections.find_objection(key)
        if problem is None:
            electable.append(key)
        if problem is None or wanted is not None or problem.code != ErrorCode.ELECTION_NOT_NEEDED:
            results[key] = problem
    changed = change_partitions(draft, lambda key, partition: elections.elect(key, partition) or partition, electable)
    return PartitionResults(results, changed)


class _Elections:
    """Elections of one type."""

    def __init__(self, draft: MetadataDraft, situation: Situation, kind: ElectionType) -> None:
        self._draft = draft
        self._situation = situation
        self._kind = kind
        self._presence = Presence(draft.brokers, situation)

    def find_objection(self, key: TopicPartition) -> KafkaError | None:
        """Return why no leader is elected."""
        name = f"{key.topic}-{key.partition}"
        partition = find_partition(self._draft, key)
        if partition is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
        if self._situation.is_queued(key.topic):
            return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {key.topic} is being deleted")
        if not self._needs_election(key, partition):
            return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{name} is led by broker {partition.leader} already")
        if self.elect(key, partition) is None:
            return KafkaError(NO_CANDIDATE[self._kind], f"no replica of {name} can be elected")
        return None

    def _needs_election(self, key: TopicPartition, partition: PartitionImage) -> bool:
        if self._kind == ElectionType.PREFERRED:
            return partition.leader != partition.replicas[0]
        return not self._presence.is_present(key, partition.leader)

    def elect(self, key: TopicPartition, partition: PartitionImage) -> PartitionImage | None:
        """Return the partition under its new leader, None if there is no candidate."""
        online = self._presence.list_online(key, partition.replicas)
        if self._kind == ElectionType.PREFERRED:
            return elect_preferred(partition, online)
        recovery_supported = self._situation.recovery_supported
        return elect_offline(partition, online, unclean=True, recovery_supported=recovery_supported)


def balance_leaders(draft: MetadataDraft, situation: Situation, percentage: int) -> tuple[TopicPartition, ...]:
    """Move leaderships back to brokers that lead too few of the partitions whose preferred replica they are.

    *percentage* is leader.imbalance.per.broker.percentage: up to that share of a broker's partitions may be led by others.
    Returns the partitions that changed.
    """
    moves = find_imbalance(draft, situation, percentage)
    return elect_leaders(draft, situation, ElectionType.PREFERRED, moves).changed


def find_imbalance(draft: MetadataDraft, situation: Situation, percentage: int) -> list[TopicPartition]:
    """List the partitions led by another than their preferred replica, of the brokers whose share of them is too large."""
    total: dict[int, int] = defaultdict(int)
    elsewhere: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, partition in list_partitions(draft):
        if not situation.is_queued(key.topic):
            preferred = partition.replicas[0]
            total[preferred] += 1
            if partition.has_state and partition.leader != preferred:
                elsewhere[preferred].append(key)
    imbalanced = (keys for broker, keys in elsewhere.items() if len(keys) * 100 > percentage * total[broker])
    return [key for keys in imbalanced for key in keys]
