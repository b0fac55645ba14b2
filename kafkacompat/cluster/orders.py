"""The controller's orders as requests: LeaderAndIsr, StopReplica and UpdateMetadata.

They are built for versions 5, 3 and 7 or later, which every broker since Kafka 2.8 accepts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafkacompat.cluster.metadata_update import SECURITY_PROTOCOLS
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, PartitionImage
from kafkacompat.wire.apis.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kafkacompat.wire.apis.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from kafkacompat.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkacompat.cluster.decisions.broadcasts import LeaderAndIsrRow, MetadataRow, StopReplicaRow

MAX_ROWS = 5_000
"""Most partitions of one request: with their replicas they stay below the elements that one message may hold."""

Row = TypeVar("Row")


class LeaderAndIsrType(IntEnum):
    """The type of a LeaderAndIsr request; ALL names every replica of the broker, so that others are strays."""

    UNKNOWN = 0
    CHANGED = 1
    ALL = 2


class SendingController(NamedTuple):
    """The controller that sends, and its epoch."""

    controller_id: int
    controller_epoch: int


def build_leader_and_isr(
    sender: SendingController,
    broker: BrokerImage,
    rows: Sequence[LeaderAndIsrRow],
    brokers: Mapping[int, BrokerImage],
    listener: str,
    *,
    is_full: bool,
) -> Iterator[LeaderAndIsrRequest]:
    """Build the requests for one broker. A full one names all its replicas, in one request however many they are."""
    for piece in [rows] if is_full else _cut(rows):
        leaders = {row.partition.leader for row in piece} & brokers.keys()
        topics: dict[tuple[str, bytes], list[LeaderAndIsrPartitionState]] = defaultdict(list)
        for row in piece:
            topics[row.topic, row.topic_id].append(_build_leader_state(sender, row))
        yield LeaderAndIsrRequest(
            controller_id=sender.controller_id,
            controller_epoch=sender.controller_epoch,
            broker_epoch=broker.epoch,
            type=LeaderAndIsrType.ALL if is_full else LeaderAndIsrType.CHANGED,
            topic_states=[
                LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=states)
                for (name, topic_id), states in topics.items()
            ],
            live_leaders=[_build_live_leader(brokers[node], listener) for node in sorted(leaders)],
        )


def _cut(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for first in range(0, len(rows), MAX_ROWS):
        yield rows[first : first + MAX_ROWS]


def _build_leader_state(sender: SendingController, row: LeaderAndIsrRow) -> LeaderAndIsrPartitionState:
    partition = row.partition
    return LeaderAndIsrPartitionState(
        partition_index=partition.partition,
        controller_epoch=sender.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.in_sync_replicas),
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
        is_new=row.is_new,
        leader_recovery_state=int(partition.is_recovering),
    )


def _build_live_leader(broker: BrokerImage, listener: str) -> LeaderAndIsrLiveLeader:
    host, port = broker.endpoints[listener]
    return LeaderAndIsrLiveLeader(broker_id=broker.node_id, host_name=host, port=port)


def build_partition_image(state: LeaderAndIsrPartitionState) -> PartitionImage:
    """Return what a LeaderAndIsr request says of one partition."""
    return PartitionImage(
        state.partition_index,
        max(state.leader, NO_LEADER),
        state.leader_epoch,
        tuple(state.replicas),
        tuple(state.isr),
        state.partition_epoch,
        tuple(state.adding_replicas),
        tuple(state.removing_replicas),
        bool(state.leader_recovery_state),
    )


def build_stop_replica(
    sender: SendingController, broker: BrokerImage, rows: Sequence[StopReplicaRow]
) -> Iterator[StopReplicaRequest]:
    """Build the requests for one broker."""
    for piece in _cut(rows):
        topics: dict[str, list[StopReplicaPartitionState]] = defaultdict(list)
        for row in piece:
            state = StopReplicaPartitionState(
                partition_index=row.partition, leader_epoch=row.leader_epoch, delete_partition=row.delete
            )
            topics[row.topic].append(state)
        yield StopReplicaRequest(
            controller_id=sender.controller_id,
            controller_epoch=sender.controller_epoch,
            broker_epoch=broker.epoch,
            topic_states=[
                StopReplicaTopicState(topic_name=name, partition_states=states) for name, states in topics.items()
            ],
        )


def build_update_metadata(
    sender: SendingController,
    recipients: Collection[BrokerImage],
    rows: Sequence[MetadataRow],
    brokers: Iterable[BrokerImage],
) -> Iterator[tuple[int, UpdateMetadataRequest]]:
    """Build the requests for some brokers, at least one for each: each has all live brokers.

    The requests share their contents, because all brokers receive the same: thousands of partitions are built once.
    """
    live_brokers = [_build_live_broker(live) for live in brokers]
    for piece in _cut(rows) if rows else [rows]:
        topics: dict[tuple[str, bytes], list[UpdateMetadataPartitionState]] = defaultdict(list)
        for row in piece:
            topics[row.topic, row.topic_id].append(_build_metadata_state(sender, row))
        topic_states = [
            UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=states)
            for (name, topic_id), states in topics.items()
        ]
        for recipient in recipients:
            yield (
                recipient.node_id,
                UpdateMetadataRequest(
                    controller_id=sender.controller_id,
                    controller_epoch=sender.controller_epoch,
                    broker_epoch=recipient.epoch,
                    topic_states=topic_states,
                    live_brokers=live_brokers,
                ),
            )


def _build_metadata_state(sender: SendingController, row: MetadataRow) -> UpdateMetadataPartitionState:
    partition = row.partition
    return UpdateMetadataPartitionState(
        partition_index=partition.partition,
        controller_epoch=sender.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.in_sync_replicas),
        zk_version=partition.partition_epoch,
        replicas=list(partition.replicas),
        offline_replicas=list(row.offline_replicas),
    )


def _build_live_broker(broker: BrokerImage) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(
            host=host,
            port=port,
            listener=listener,
            security_protocol=SECURITY_PROTOCOLS.index(broker.security_protocols[listener]),
        )
        for listener, (host, port) in broker.endpoints.items()
    ]
    return UpdateMetadataBroker(id=broker.node_id, endpoints=endpoints, rack=broker.rack)
