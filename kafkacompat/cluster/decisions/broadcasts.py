"""What brokers receive after a decision: LeaderAndIsr, StopReplica and UpdateMetadata, as rows that know no version.

A broker that starts first receives all metadata as it was before the decision, with the brokers of now, and then LeaderAndIsr
with all its replicas. Other brokers receive LeaderAndIsr for what changed on their replicas. Only after these are answered do all
brokers receive the changed metadata, so that it names no leader that does not accept writes yet. A topic that has no id yet is not
mentioned to any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from kafkacompat.cluster.decisions.situation import Presence, ReplicaStop, Situation, TopicPartition
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire.primitives import ZERO_UUID

LEADER_DURING_DELETION = -2
EPOCH_DURING_DELETION = -2
NO_EPOCH = -1


class LeaderAndIsrRow(NamedTuple):
    """One partition of LeaderAndIsr; a broker creates the replica if ``is_new``, even when one of its directories has failed."""

    topic: str
    topic_id: bytes
    partition: PartitionImage
    is_new: bool = False


class StopReplicaRow(NamedTuple):
    """One partition of StopReplica; ``leader_epoch`` is -2 when its topic is being deleted, -1 when there is none."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


class MetadataRow(NamedTuple):
    """One partition of UpdateMetadata; its leader is -2 when its topic is being deleted."""

    topic: str
    topic_id: bytes
    partition: PartitionImage
    offline_replicas: tuple[int, ...]


class BrokerOrders(NamedTuple):
    """What one broker receives.

    ``first_metadata`` goes ahead of the other messages, to brokers that start; None to others. ``is_full`` marks LeaderAndIsr as
    naming all replicas of the broker: it is sent even when it names none.
    """

    broker: BrokerImage
    first_metadata: tuple[MetadataRow, ...] | None
    leader_and_isr: tuple[LeaderAndIsrRow, ...]
    is_full: bool
    stop_replica: tuple[StopReplicaRow, ...]


class Broadcast(NamedTuple):
    """The orders of every registered broker, and the metadata that all receive afterwards.

    ``brokers_changed`` is set when UpdateMetadata is due for its list of brokers, even without a row.
    """

    orders: tuple[BrokerOrders, ...]
    metadata: tuple[MetadataRow, ...]
    brokers_changed: bool


class Moment(NamedTuple):
    """The image and the situation before or after a decision."""

    image: MetadataImage
    situation: Situation


def plan_broadcast(
    old: Moment,
    new: Moment,
    *,
    started: Collection[int] = (),
    queried: Collection[int] = (),
    stops: Iterable[ReplicaStop] = (),
) -> Broadcast:
    """Plan what brokers receive when *new* follows on *old*.

    *started* brokers receive everything; after the take-over of a controller these are all brokers. *queried* ones receive
    LeaderAndIsr with all their replicas, to find those in failed log directories. *stops* are those of the decision.
    """
    leader_and_isr = _list_leader_and_isr(old.image, new.image, started, queried)
    stop_replica = _list_stops(old.image, new, stops)
    all_metadata = tuple(_list_metadata(old, new.image.brokers)) if started else ()
    orders = (
        BrokerOrders(
            broker,
            all_metadata if node in started else None,
            tuple(leader_and_isr[node]),
            node in started,
            tuple(stop_replica[node].values()),
        )
        for node, broker in new.image.brokers.items()
    )
    brokers_changed = old.image.brokers != new.image.brokers
    return Broadcast(tuple(orders), tuple(_list_changed_metadata(old, new)), brokers_changed)


# LeaderAndIsr


def _list_leader_and_isr(
    old: MetadataImage, new: MetadataImage, started: Collection[int], queried: Collection[int]
) -> dict[int, list[LeaderAndIsrRow]]:
    complete = {*started, *queried}
    rows: dict[int, list[LeaderAndIsrRow]] = defaultdict(list)
    for topic in new.topics.values():
        before = old.topics_by_id.get(topic.topic_id)
        if topic.topic_id == ZERO_UUID or (before is topic and not complete):
            continue
        for partition in topic.partitions:
            if not partition.has_state:
                continue
            earlier = _get_partition(before, partition.partition)
            is_changed = _is_announced(earlier, partition)
            for node in partition.replicas:
                if node in new.brokers and (is_changed or node in complete):
                    is_new = _is_new(earlier, partition, node)
                    rows[node].append(LeaderAndIsrRow(topic.name, topic.topic_id, partition, is_new))
    return rows


def _get_partition(topic: TopicImage | None, index: int) -> PartitionImage | None:
    return topic.partitions[index] if topic and index < len(topic.partitions) else None


def _is_announced(earlier: PartitionImage | None, partition: PartitionImage) -> bool:
    """Whether replicas must learn of a change; a leader's own change of the in-sync set is answered to it alone."""
    return earlier is None or (earlier.leader_epoch, earlier.replicas) != (partition.leader_epoch, partition.replicas)


def _is_new(earlier: PartitionImage | None, partition: PartitionImage, node: int) -> bool:
    """Whether a replica is created, or created again if it is lost: one that is not in sync yet has nothing to lose.

    A state that has changed is not that of a new partition: the controller had left the topic out.
    """
    is_first = partition.partition_epoch == 0 if earlier is None else not earlier.has_state
    return is_first or (node in partition.adding_replicas and node not in partition.in_sync_replicas)


# StopReplica


def _list_stops(
    old: MetadataImage, new: Moment, stops: Iterable[ReplicaStop]
) -> dict[int, dict[TopicPartition, StopReplicaRow]]:
    """List the stops of a decision and the replicas that reassignments have taken away; a deletion wins."""
    rows: dict[int, dict[TopicPartition, StopReplicaRow]] = defaultdict(dict)
    for stop in (*stops, *_list_removed(old, new.image)):
        earlier = rows[stop.broker_id].get(stop.key)
        delete = stop.delete or (earlier is not None and earlier.delete)
        epoch = _get_stop_epoch(new, stop.key)
        rows[stop.broker_id][stop.key] = StopReplicaRow(*stop.key, epoch, delete)
    return rows


def _list_removed(old: MetadataImage, new: MetadataImage) -> Iterator[ReplicaStop]:
    for topic in new.topics.values():
        before = old.topics_by_id.get(topic.topic_id)
        if before is None or before is topic:
            continue
        for earlier, partition in zip(before.partitions, topic.partitions, strict=False):
            for node in earlier.replicas:
                if node not in partition.replicas:
                    yield ReplicaStop(node, TopicPartition(topic.name, partition.partition), delete=True)


def _get_stop_epoch(moment: Moment, key: TopicPartition) -> int:
    if moment.situation.is_deleting(key.topic):
        return EPOCH_DURING_DELETION
    partition = _get_partition(moment.image.topics.get(key.topic), key.partition)
    return NO_EPOCH if partition is None else partition.leader_epoch


# UpdateMetadata


def _list_changed_metadata(old: Moment, new: Moment) -> Iterator[MetadataRow]:
    """List the rows that differ from the earlier ones; most topics are the same object in both images."""
    is_same = old.image.brokers.keys() == new.image.brokers.keys() and old.situation == new.situation
    presences = [Presence(moment.image.brokers, moment.situation) for moment in (old, new)]
    for topic in new.image.topics.values():
        before = old.image.topics_by_id.get(topic.topic_id)
        if topic.topic_id == ZERO_UUID or (is_same and before is topic):
            continue
        rows = () if before is None else _list_topic(before, old.situation, presences[0])
        earlier = {row.partition.partition: row for row in rows}
        for row in _list_topic(topic, new.situation, presences[1]):
            if earlier.get(row.partition.partition) != row:
                yield row


def _list_metadata(old: Moment, brokers: Mapping[int, BrokerImage]) -> Iterator[MetadataRow]:
    """List the earlier metadata for brokers that start; brokers that failed or bounced since lead nothing in it."""
    before = old.image.brokers
    leading = {node for node, broker in brokers.items() if node in before and before[node].epoch == broker.epoch}
    presence = Presence(leading, old.situation)
    for topic in old.image.topics.values():
        if topic.topic_id != ZERO_UUID and not old.situation.is_deleting(topic.name):
            for row in _list_topic(topic, old.situation, presence):
                leads = row.partition.leader in leading
                yield row if leads else row._replace(partition=row.partition._replace(leader=NO_LEADER))


def _list_topic(topic: TopicImage, situation: Situation, presence: Presence) -> Iterator[MetadataRow]:
    """List a topic's partitions that have a state."""
    is_deleting = situation.is_deleting(topic.name)
    for partition in topic.partitions:
        if partition.has_state:
            key = TopicPartition(topic.name, partition.partition)
            online = presence.list_online(key, partition.replicas)
            offline = tuple(node for node in partition.replicas if node not in online)
            shown = _show_deletion(partition) if is_deleting else partition
            yield MetadataRow(topic.name, topic.topic_id, shown, offline)


def _show_deletion(partition: PartitionImage) -> PartitionImage:
    return partition._replace(leader=LEADER_DURING_DELETION, leader_epoch=0, partition_epoch=0)
