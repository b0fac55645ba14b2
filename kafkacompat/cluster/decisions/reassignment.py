"""Reassignments of partitions to other brokers (KIP-455), also those that /admin/reassign_partitions requests.

While a reassignment is in progress, a partition has the replicas of its target, in their order, and then the original ones. It
ends when all replicas of the target are in sync and one of them can lead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkacompat.cluster.decisions.elections import elect_offline, elect_reassigned, raise_leader_epoch
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
from kafkacompat.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError


def reassign_partitions(
    draft: MetadataDraft,
    situation: Situation,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    *,
    factor_may_change: bool = True,
) -> PartitionResults:
    """Start, replace or cancel (None) reassignments, as AlterPartitionReassignments requests.

    Errors: INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS, UNKNOWN_TOPIC_OR_PARTITION; INVALID_REPLICATION_FACTOR unless
    *factor_may_change* (KIP-860).
    """
    live = draft.brokers.keys() - situation.shutting_down
    return _reassign_each(draft, situation, wanted, live, factor_may_change=factor_may_change)


def reassign_stored(
    draft: MetadataDraft, situation: Situation, stored: Mapping[TopicPartition, Sequence[int]]
) -> PartitionResults:
    """Start the reassignments that an old tool wrote to /admin/reassign_partitions.

    As in Kafka, the tool has checked the brokers: those that are not alive are waited for. Entries whose reassignment is in
    progress already, as after a change of the controller, go on.
    """
    return _reassign_each(draft, situation, stored, None)


def _reassign_each(
    draft: MetadataDraft,
    situation: Situation,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    live: Collection[int] | None,
    *,
    factor_may_change: bool = True,
) -> PartitionResults:
    """Reassign partitions; new replicas must be on a *live* broker, or anywhere if that is None."""
    presence = Presence(draft.brokers, situation)
    results: dict[TopicPartition, KafkaError | None] = {}
    changed: list[TopicPartition] = []
    for key, target in wanted.items():
        try:
            partition = _check_reassignment(draft, situation, key, target, live)
            if target is not None and not factor_may_change:
                _check_factor(partition, target)
            assigned = _assign_target(partition, partition.origin_replicas if target is None else target)
        except KafkaError as problem:
            # The traceback refers to every frame on the way.
            results[key] = problem.with_traceback(None)
        else:
            results[key] = None
            changed += _begin(draft, presence, key, assigned)
    return PartitionResults(results, tuple(changed))


def _check_reassignment(
    draft: MetadataDraft,
    situation: Situation,
    key: TopicPartition,
    target: Sequence[int] | None,
    live: Collection[int] | None,
) -> PartitionImage:
    """Return the partition to reassign; raises KafkaError, in Kafka's order, when it cannot be."""
    partition = find_partition(draft, key)
    if target is not None:
        if problem := _find_objection(target):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the assignment {problem}")
        if live is not None:
            _check_liveness(() if partition is None else partition.origin_replicas, target, live)
    elif partition is None or not partition.is_reassigned:
        reason = f"no reassignment of {key.topic}-{key.partition} is in progress that could be cancelled"
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, reason)
    if partition is None or situation.is_queued(key.topic):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {key.topic}-{key.partition}")
    return partition


def _find_objection(target: Sequence[int]) -> str | None:
    if not target:
        return "is empty"
    if len(set(target)) < len(target):
        return f"names a broker twice: {list(target)}"
    if min(target) < 0:
        return f"names broker {min(target)}: ids are 0 or more"
    return None


def _check_liveness(origin: Sequence[int], target: Sequence[int], live: Collection[int]) -> None:
    """Reject new replicas on brokers that are not alive; those that the partition has already may be down."""
    if missing := sorted(set(target).difference(origin, live)):
        names = ", ".join(map(str, missing))
        reason = f"the assignment names broker(s) {names}, which are not alive: start them or name others"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def _check_factor(partition: PartitionImage, target: Sequence[int]) -> None:
    have = len(partition.origin_replicas)
    if len(target) != have:
        reason = (
            f"the partition has {have} replica(s), the assignment {len(target)}: allow the change or keep the number"
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


def _assign_target(partition: PartitionImage, target: Sequence[int]) -> PartitionImage:
    """Set the replicas while the reassignment is in progress; adding ones that are no longer wanted are stopped.

    Raises KafkaError INVALID_REPLICA_ASSIGNMENT if only such replicas are in sync: the others lack records, and a cancellation
    is no permission to lose them.
    """
    origin = partition.origin_replicas
    replicas = tuple(dict.fromkeys((*target, *origin)))
    unneeded = set(partition.replicas).difference(replicas)
    if partition.has_state and unneeded.issuperset(partition.in_sync_replicas):
        names = ", ".join(map(str, partition.in_sync_replicas))
        reason = f"only broker(s) {names} have all records: wait until a replica that stays is in sync"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    return partition._replace(
        replicas=replicas,
        adding_replicas=tuple(node for node in replicas if node not in origin),
        removing_replicas=tuple(node for node in replicas if node not in target),
    )


def _begin(
    draft: MetadataDraft, presence: Presence, key: TopicPartition, assigned: PartitionImage
) -> tuple[TopicPartition, ...]:
    def change(_: TopicPartition, partition: PartitionImage) -> PartitionImage:
        if assigned == partition and not partition.is_reassigned:
            return partition
        return _advance(presence, key, assigned)

    return change_partitions(draft, change, [key])


def _advance(presence: Presence, key: TopicPartition, assigned: PartitionImage) -> PartitionImage:
    """Do what follows on a new assignment: end the reassignment, or let the leader accept the new replicas."""
    online = presence.list_online(key, assigned.replicas)
    if not assigned.has_state:
        # Nothing was ever written: there is nothing to wait for.
        settled = _settle_assignment(assigned)
        return elect_offline(settled, online) or settled
    stopped = _stop_unneeded(assigned)
    if ended := _end(presence, key, stopped):
        return ended
    elected = elect_offline(stopped, online) if stopped.leader == NO_LEADER else None
    return elected or raise_leader_epoch(stopped)


def _stop_unneeded(partition: PartitionImage) -> PartitionImage:
    """Take brokers that are no longer assigned out of the in-sync set and out of leadership."""
    return partition._replace(
        leader=partition.leader if partition.leader in partition.replicas else NO_LEADER,
        in_sync_replicas=tuple(node for node in partition.in_sync_replicas if node in partition.replicas),
    )


def _end(presence: Presence, key: TopicPartition, partition: PartitionImage) -> PartitionImage | None:
    """End a reassignment; None if a replica of its target is not in sync, or none of them can lead."""
    targets = partition.target_replicas
    if not set(targets) <= set(partition.in_sync_replicas):
        return None
    if partition.leader in targets and presence.is_present(key, partition.leader):
        ended = raise_leader_epoch(partition)
    else:
        elected = elect_reassigned(partition, presence.list_online(key, targets))
        if elected is None:
            return None
        ended = elected
    in_sync = tuple(node for node in ended.in_sync_replicas if node in targets)
    return _settle_assignment(ended)._replace(in_sync_replicas=in_sync)


def _settle_assignment(partition: PartitionImage) -> PartitionImage:
    return partition._replace(replicas=partition.target_replicas, adding_replicas=(), removing_replicas=())


def complete_reassignments(
    draft: MetadataDraft, situation: Situation, keys: Iterable[TopicPartition] | None = None
) -> tuple[TopicPartition, ...]:
    """End those reassignments of the given partitions, or of all, that are complete; return the partitions that changed."""
    presence = Presence(draft.brokers, situation)

    def change(key: TopicPartition, partition: PartitionImage) -> PartitionImage:
        return (_end(presence, key, partition) or partition) if partition.is_reassigned else partition

    return change_partitions(draft, change, keys)


def list_reassignments(
    image: MetadataImage, wanted: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, PartitionImage]:
    """List the given partitions, or all, that are being reassigned, as ListPartitionReassignments answers."""
    if wanted is None:
        return {key: partition for key, partition in list_partitions(image) if partition.is_reassigned}
    partitions = {key: find_partition(image, key) for key in wanted}
    return {key: partition for key, partition in partitions.items() if partition and partition.is_reassigned}


# /admin/reassign_partitions


def keep_unfinished(
    image: MetadataImage, stored: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, Sequence[int]]:
    """Keep the entries of /admin/reassign_partitions that are in progress; the znode goes with the last of them.

    An entry goes when its reassignment has ended, failed, or was replaced through the API.
    """
    return {
        key: replicas
        for key, replicas in stored.items()
        if (partition := find_partition(image, key))
        and partition.is_reassigned
        and partition.target_replicas == tuple(replicas)
    }
