"""What no controller orders: names that are no topics', negative numbers, ids of other topics.

A name becomes a folder, and an index decides how much memory a topic takes. So these are checked before an order is carried out,
whoever sent it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafkacompat.config.listeners import MAX_PORT
from kafkacompat.metadata.topic_names import CLUSTER_METADATA_TOPIC, is_legal_name
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from kafkacompat.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage

MOST_UNKNOWN_PARTITIONS = 100_000
"""Partitions that one UpdateMetadata may skip: those that never had a leader are not sent."""


def find_objection(topic: str, partition: PartitionImage) -> ErrorCode:
    """Return NONE for a replica that a controller may assign, by the contents of its LeaderAndIsr."""
    if not _may_be_ordered(topic):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    numbers = (partition.partition, partition.leader_epoch, partition.partition_epoch)
    if min(*numbers, *partition.replicas, *partition.in_sync_replicas) < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _may_be_ordered(topic: str) -> bool:
    return is_legal_name(topic) and topic != CLUSTER_METADATA_TOPIC


def check_partitions(before: MetadataImage, updated: Mapping[str, Sequence[int]]) -> None:
    """Raise KafkaError unless an update may have these partitions of topics: INVALID_TOPIC_EXCEPTION or INVALID_REQUEST.

    A topic's partitions are numbered without gaps, so that a single large number would take any amount of memory.
    """
    unknown = 0
    for name, indices in updated.items():
        if not _may_be_ordered(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the update names a topic that cannot exist")
        if min(indices, default=0) < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the update has the partition {min(indices)} of {name}")
        known = before.topics.get(name)
        count = max(indices, default=-1) + 1
        unknown += max(count - (len(known.partitions) if known else 0) - len(indices), 0)
    if unknown > MOST_UNKNOWN_PARTITIONS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the update skips {unknown} partitions")


def check_topic_ids(before: MetadataImage, topics: Mapping[str, TopicImage], updated: Iterable[str]) -> None:
    """Raise KafkaError INCONSISTENT_TOPIC_ID if an updated topic has the id of another one of *topics*."""
    holders: dict[bytes, str] = {}
    for name in updated:
        topic = topics.get(name)
        if topic is None or topic.topic_id == ZERO_UUID:
            continue
        known = before.topics_by_id.get(topic.topic_id)
        first = known.name if known is not None and known.name in topics else name
        if holders.setdefault(topic.topic_id, first) != name:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"the update gives {name} the id of another topic")


def check_brokers(brokers: Iterable[BrokerImage]) -> None:
    """Raise KafkaError INVALID_REQUEST for a negative id, and for a port that cannot be."""
    for broker in brokers:
        ports = [port for _, port in broker.endpoints.values()]
        if broker.node_id < 0 or not all(0 <= port <= MAX_PORT for port in ports):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"the update has a broker {broker.node_id} at the ports {ports}"
            )
