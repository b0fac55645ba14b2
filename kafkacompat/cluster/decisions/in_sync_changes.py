"""Changes of in-sync sets that leaders request by AlterPartition (KIP-497, KIP-903)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafkacompat.cluster.decisions.situation import Situation, TopicPartition, change_partitions, find_partition
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import BrokerImage, PartitionImage
from kafkacompat.wire.errors import ErrorCode, KafkaError

ANY_EPOCH = -1


class InSyncChange(NamedTuple):
    """The in-sync set that a leader requests.

    ``topic`` is a name, or from version 2 an id. ``broker_epochs`` are those of ``in_sync_replicas`` in their order, from version
    3; -1 stands for an unknown one.
    """

    topic: str | bytes
    partition: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: tuple[int, ...]
    broker_epochs: tuple[int, ...] = ()
    is_recovering: bool = False


class InSyncRequest(NamedTuple):
    """An AlterPartition request."""

    broker_id: int
    broker_epoch: int
    version: int
    changes: Sequence[InSyncChange]


class InSyncResults(NamedTuple):
    """The state or an error for each change, in order, and the partitions that the draft changed.

    Reassignments of the changed partitions may be complete now; as Kafka does, answer first.
    """

    results: tuple[PartitionImage | ErrorCode, ...]
    changed: tuple[TopicPartition, ...]


def change_in_sync_sets(draft: MetadataDraft, situation: Situation, request: InSyncRequest) -> InSyncResults:
    """Check and apply the changes; raises KafkaError STALE_BROKER_EPOCH for another registration of the broker.

    A change that is in effect already is answered as made. Error codes of a change: UNKNOWN_TOPIC_OR_PARTITION,
    UNKNOWN_TOPIC_ID, NOT_CONTROLLER (the leader knows of a newer state, so another broker is the controller),
    FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST, and INELIGIBLE_REPLICA, before version 2
    OPERATION_NOT_ATTEMPTED.
    """
    broker = draft.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        reason = f"broker {request.broker_id} is not registered with the epoch {request.broker_epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, reason)
    checks = _Checks(draft.brokers, situation, request)
    results: list[PartitionImage | ErrorCode] = []
    changed: list[TopicPartition] = []
    for change in request.changes:
        key = _find_key(draft, change.topic, change.partition)
        partition = find_partition(draft, key) if isinstance(key, TopicPartition) else None
        if isinstance(key, ErrorCode) or partition is None or not partition.has_state:
            results.append(key if isinstance(key, ErrorCode) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        code = checks.find_error(key, partition, change)
        if code is None and not _is_in_effect(partition, change, request.broker_id):
            changed += change_partitions(draft, partial(_apply, change), [key])
            partition = draft.topics[key.topic].partitions[key.partition]
        results.append(partition if code is None else code)
    return InSyncResults(tuple(results), tuple(changed))


def _find_key(draft: MetadataDraft, topic: str | bytes, partition: int) -> TopicPartition | ErrorCode:
    if isinstance(topic, str):
        return TopicPartition(topic, partition)
    image = draft.topics_by_id.get(topic)
    return ErrorCode.UNKNOWN_TOPIC_ID if image is None else TopicPartition(image.name, partition)


def _is_in_effect(partition: PartitionImage, change: InSyncChange, broker_id: int) -> bool:
    return (
        partition.leader == broker_id
        and partition.leader_epoch == change.leader_epoch
        and partition.partition_epoch >= change.partition_epoch
        and partition.is_recovering == change.is_recovering
        and sorted(partition.in_sync_replicas) == sorted(change.in_sync_replicas)
    )


def _apply(change: InSyncChange, key: TopicPartition, partition: PartitionImage) -> PartitionImage:
    """Set the in-sync set; the leader epoch stays, because the leader does."""
    return partition._replace(
        in_sync_replicas=change.in_sync_replicas,
        partition_epoch=partition.partition_epoch + 1,
        is_recovering=change.is_recovering,
    )


class _Checks:
    """Kafka's checks of one request's changes, in its order."""

    def __init__(self, brokers: Mapping[int, BrokerImage], situation: Situation, request: InSyncRequest) -> None:
        self._brokers = brokers
        self._situation = situation
        self._broker_id = request.broker_id
        self._ineligible = ErrorCode.INELIGIBLE_REPLICA if request.version > 1 else ErrorCode.OPERATION_NOT_ATTEMPTED

    def find_error(self, key: TopicPartition, partition: PartitionImage, change: InSyncChange) -> ErrorCode | None:
        """Return the reason to reject a change; None also if it is in effect already."""
        if change.partition_epoch > partition.partition_epoch or change.leader_epoch > partition.leader_epoch:
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if _is_in_effect(partition, change, self._broker_id):
            return None
        if change.partition_epoch < partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if self._is_invalid(partition, change):
            return ErrorCode.INVALID_REQUEST
        return None if self._is_eligible(key, partition, change) else self._ineligible

    def _is_invalid(self, partition: PartitionImage, change: InSyncChange) -> bool:
        """Whether the change is not one that the leader may make.

        Kafka's ZooKeeper controller checks the recovery only; its KRaft controller also checks that the request comes from the
        leader, and that the set holds the leader and nothing but replicas.
        """
        members = set(change.in_sync_replicas)
        return (
            (change.is_recovering and (len(members) > 1 or not partition.is_recovering))
            or partition.leader != self._broker_id
            or self._broker_id not in members
            or len(members) < len(change.in_sync_replicas)
            or not members.issubset(partition.replicas)
        )

    def _is_eligible(self, key: TopicPartition, partition: PartitionImage, change: InSyncChange) -> bool:
        epochs = change.broker_epochs or (ANY_EPOCH,) * len(change.in_sync_replicas)
        return all(
            self._may_be_in_sync(key, node, epoch) for node, epoch in zip(change.in_sync_replicas, epochs, strict=False)
        )

    def _may_be_in_sync(self, key: TopicPartition, node: int, epoch: int) -> bool:
        """Whether a broker may be in sync: it is alive, of the right epoch (KIP-903), and does not shut down.

        The leader itself may shut down. Kafka rejects that, so that no follower can join while the last member of an in-sync set
        waits to hand over its leadership.
        """
        broker = self._brokers.get(node)
        if broker is None or epoch not in (ANY_EPOCH, broker.epoch):
            return False
        if node == self._broker_id:
            return True
        return node not in self._situation.shutting_down and not self._situation.has_failed_directory(key, node)
