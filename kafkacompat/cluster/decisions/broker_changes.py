"""What changes when brokers fail, start, bounce, shut down, or lose a log directory, and when a controller takes over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kafkacompat.cluster.decisions.elections import (
    elect_for_shutdown,
    elect_offline,
    raise_leader_epoch,
    remove_in_sync,
)
from kafkacompat.cluster.decisions.reassignment import complete_reassignments
from kafkacompat.cluster.decisions.situation import (
    Change,
    Decision,
    Presence,
    ReplicaStop,
    Situation,
    TopicPartition,
    change_partitions,
    is_unclean_allowed,
    list_partitions,
)
from kafkacompat.cluster.decisions.topic_deletion import fail_pending, queue_deletions, resume_deletions
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import NO_LEADER, NO_LOSSES, BrokerImage, PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError

UNKNOWN_BROKER_EPOCH = -1


class BrokerDifference(NamedTuple):
    """Brokers that started, failed and bounced, in the order of their ids."""

    started: tuple[int, ...]
    failed: tuple[int, ...]
    bounced: tuple[int, ...]


def compare_brokers(old: Mapping[int, BrokerImage], new: Mapping[int, BrokerImage]) -> BrokerDifference:
    """Compare the brokers of two moments; one that has a newer epoch has bounced (KIP-380)."""
    bounced = (node for node in old.keys() & new.keys() if new[node].epoch > old[node].epoch)
    return BrokerDifference(
        tuple(sorted(new.keys() - old.keys())), tuple(sorted(old.keys() - new.keys())), tuple(sorted(bounced))
    )


def handle_broker_changes(draft: MetadataDraft, situation: Situation, difference: BrokerDifference) -> Decision:
    """Handle the failures, then the starts; a bounce is both (KIP-380).

    Kafka handles starts first and failures last. Then a broker that bounces while the other member of an in-sync set fails leaves
    the set, and the partition stays without a leader although that broker has all records. For the same reason an unclean
    election comes only after the starts.

    A broker that has bounced without a loss stays in sync: the other members of the set may be dead although their sessions have not
    ended. Its partitions get a new leader epoch.
    """
    intact = _list_intact(draft, difference.bounced)
    gone = {*difference.failed, *difference.bounced} - intact
    arrived = {*difference.started, *difference.bounced}
    decision = Decision(situation)
    if gone:
        decision = handle_broker_failure(draft, situation, gone, unclean_allowed=not arrived)
    if intact:
        decision = _renew_leaders(draft, decision.situation, intact).after(decision)
    if arrived:
        decision = handle_broker_start(draft, decision.situation, arrived).after(decision)
    return decision


def _list_intact(draft: MetadataDraft, bounced: Collection[int]) -> set[int]:
    """List the brokers that say that they have all that they had before they started again."""
    return {node for node in bounced if node in draft.brokers and draft.brokers[node].losses == NO_LOSSES}


def _renew_leaders(draft: MetadataDraft, situation: Situation, broker_ids: Collection[int]) -> Decision:
    """Let brokers that have bounced lead their partitions on under a new epoch."""
    situation = fail_pending(situation.without_brokers(broker_ids), broker_ids)

    def renew(key: TopicPartition, partition: PartitionImage) -> PartitionImage:
        leads = partition.leader in broker_ids and not situation.is_deleting(key.topic)
        return raise_leader_epoch(partition) if leads else partition

    return Decision(situation, change_partitions(draft, renew))


def handle_broker_failure(
    draft: MetadataDraft, situation: Situation, broker_ids: Collection[int], *, unclean_allowed: bool = True
) -> Decision:
    """Move the leaderships of brokers that have gone, and take them out of the in-sync sets.

    The draft may still name the brokers, as after a bounce.
    """
    situation = fail_pending(situation.without_brokers(broker_ids), broker_ids)
    return Decision(situation, fail_over(draft, situation, broker_ids, unclean_allowed=unclean_allowed))


def fail_over(
    draft: MetadataDraft,
    situation: Situation,
    gone: Collection[int],
    topics: Collection[str] | None = None,
    *,
    unclean_allowed: bool = False,
) -> tuple[TopicPartition, ...]:
    """Let other brokers lead than those in *gone*, in the given topics or in all; return the partitions that changed."""
    elect = _make_election(draft, situation, Presence(draft.brokers, situation, gone), unclean_allowed=unclean_allowed)
    return change_partitions(draft, _make_failover(situation, elect, gone), _list_keys(draft, topics))


def _list_keys(draft: MetadataDraft, topics: Collection[str] | None) -> list[TopicPartition] | None:
    """List the partitions of the given topics, for `change_partitions`."""
    if topics is None:
        return None
    names = draft.topics.keys() & topics
    return [TopicPartition(name, index) for name in names for index in range(len(draft.topics[name].partitions))]


def _make_failover(situation: Situation, elect: Change, gone: Collection[int]) -> Change:
    """Make the change of a partition when the brokers in *gone* have gone: elect, or else take them out."""

    def fail_over(key: TopicPartition, partition: PartitionImage) -> PartitionImage:
        if situation.is_deleting(key.topic):
            return partition
        elected = elect(key, partition)
        return remove_in_sync(partition, gone) if elected is partition else elected

    return fail_over


def elect_leaderless(
    draft: MetadataDraft, situation: Situation, topics: Collection[str] | None = None
) -> tuple[TopicPartition, ...]:
    """Elect leaders for partitions without one, of the given topics or of all; return the partitions that changed.

    This follows on the creation of a topic by an old tool, and on unclean elections being allowed.
    """
    election = _make_election(draft, situation, Presence(draft.brokers, situation))
    return change_partitions(draft, election, _list_keys(draft, topics))


def _make_election(
    draft: MetadataDraft, situation: Situation, presence: Presence, *, unclean_allowed: bool = True
) -> Change:
    """Make the change that elects a leader where none serves requests; it returns other partitions as they are."""

    def elect(key: TopicPartition, partition: PartitionImage) -> PartitionImage:
        if presence.is_present(key, partition.leader) or situation.is_deleting(key.topic):
            return partition
        elected = elect_offline(
            partition,
            presence.list_online(key, partition.replicas),
            doubtful=situation.list_doubtful(key),
            unclean=unclean_allowed and is_unclean_allowed(draft, situation, key.topic),
            recovery_supported=situation.recovery_supported,
        )
        return elected or partition

    return elect


def handle_broker_start(draft: MetadataDraft, situation: Situation, broker_ids: Collection[int]) -> Decision:
    """Let brokers that have started lead partitions without a leader; reassignments and deletions that waited go on."""
    situation = _note_losses(draft, situation.without_brokers(broker_ids))
    elected = Decision(situation, elect_leaderless(draft, situation))
    completed = Decision(situation, complete_reassignments(draft, situation)).after(elected)
    return resume_deletions(draft, situation).after(completed)


def _note_losses(draft: MetadataDraft, situation: Situation) -> Situation:
    """Note which replicas of partitions without a leader may be lost, or may lack records: none of them leads without need."""
    for node, broker in draft.brokers.items():
        losses = broker.losses or NO_LOSSES
        if not any(losses):
            continue
        waiting = [
            key
            for key, partition in list_partitions(draft)
            if partition.has_state and partition.leader == NO_LEADER and node in partition.replicas
        ]
        if losses.records:
            situation = situation.with_doubtful_replicas(node, waiting)
        if losses.replicas:
            situation = situation.with_offline_replicas(node, waiting)
    return situation


def end_reassignments(draft: MetadataDraft, situation: Situation, keys: Collection[TopicPartition]) -> Decision:
    """End those reassignments of the given partitions that are complete; deletions that waited for them begin."""
    completed = Decision(situation, complete_reassignments(draft, situation, keys))
    return resume_deletions(draft, situation, {key.topic for key in completed.changed}).after(completed)


def take_over(
    draft: MetadataDraft, situation: Situation, deleting: Iterable[str] = (), bounced: Collection[int] = ()
) -> Decision:
    """Settle what happened while there was no controller.

    *deleting* names the topics in /admin/delete_topics, *bounced* the brokers that may have registered anew in the meantime:
    their partitions get other leaders or epochs. After a restart of the whole cluster these are all brokers.
    """
    deletions = queue_deletions(draft, situation, deleting)
    assigned = {node for _, partition in list_partitions(draft) for node in partition.replicas}
    intact = _list_intact(draft, bounced)
    gone = (assigned - draft.brokers.keys()).union(bounced) - intact
    failure = handle_broker_failure(draft, deletions.situation, gone, unclean_allowed=False).after(deletions)
    renewed = _renew_leaders(draft, failure.situation, intact).after(failure)
    return handle_broker_start(draft, renewed.situation, bounced).after(renewed)


def handle_replica_answers(
    draft: MetadataDraft,
    situation: Situation,
    broker_id: int,
    failed: Collection[TopicPartition],
    working: Collection[TopicPartition] = (),
) -> Decision:
    """Note what a broker answered to LeaderAndIsr: its *failed* replicas (KAFKA_STORAGE_ERROR) are in failed log directories.

    Newly failed ones lose leadership, leave the in-sync sets and are stopped. Replicas that prove to work may lead.
    """
    known = situation.offline_replicas.get(broker_id, frozenset())
    new = [key for key in failed if key not in known]
    situation = situation.with_offline_replicas(broker_id, known.difference(working).union(failed))
    situation = fail_pending(situation, [broker_id], new)
    elect = _make_election(draft, situation, Presence(draft.brokers, situation))
    changed = change_partitions(draft, _make_failover(situation, elect, [broker_id]), new)
    changed += change_partitions(draft, elect, known.intersection(working))
    stops = (ReplicaStop(broker_id, key) for key in new if not situation.is_deleting(key.topic))
    return Decision(situation, changed, tuple(stops))


class ShutdownDecision(NamedTuple):
    """A decision, and the partitions that the broker still leads: while there are any, it tries again."""

    decision: Decision
    remaining: tuple[TopicPartition, ...]


def shut_down_broker(
    draft: MetadataDraft, situation: Situation, broker_id: int, broker_epoch: int = UNKNOWN_BROKER_EPOCH
) -> ShutdownDecision:
    """Move the leaderships of a broker that is about to stop, and take it out of the in-sync sets where it follows.

    Partitions with one replica stay as they are. Raises KafkaError BROKER_NOT_AVAILABLE, STALE_BROKER_EPOCH.
    """
    broker = draft.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {broker_id} that could shut down")
    if UNKNOWN_BROKER_EPOCH != broker_epoch < broker.epoch:
        reason = f"broker {broker_id} has the epoch {broker.epoch}, the request is of epoch {broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, reason)
    situation = situation.with_shutting_down(broker_id)
    concerned = [
        (key, partition)
        for key, partition in list_partitions(draft)
        if broker_id in partition.replicas and len(partition.replicas) > 1 and partition.has_state
    ]
    concerned = [(key, partition) for key, partition in concerned if not situation.is_deleting(key.topic)]
    stops = tuple(ReplicaStop(broker_id, key) for key, partition in concerned if partition.leader != broker_id)
    changed = change_partitions(draft, _make_shutdown(draft, situation, broker_id), [key for key, _ in concerned])
    remaining = (key for key, _ in concerned if draft.topics[key.topic].partitions[key.partition].leader == broker_id)
    return ShutdownDecision(Decision(situation, changed, stops), tuple(remaining))


def _make_shutdown(draft: MetadataDraft, situation: Situation, broker_id: int) -> Change:
    presence = Presence(draft.brokers, situation)

    def leave(key: TopicPartition, partition: PartitionImage) -> PartitionImage:
        if partition.leader != broker_id:
            return remove_in_sync(partition, {broker_id})
        online = presence.list_online(key, partition.replicas)
        return elect_for_shutdown(partition, online, situation.shutting_down) or partition

    return leave
