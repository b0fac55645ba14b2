"""Partitions in the format of the classic protocol: by topic name, as bytes that consumers agreed on."""

from __future__ import annotations

from collections.abc import Collection

from kafkacompat.groups.consumer.member import Assignment
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartition,
    choose_version,
    write_assignment,
)
from kafkacompat.wire.primitives import MalformedError


def partitions_by_id(parts: Collection[TopicPartition], image: MetadataImage) -> Assignment:
    """Return partitions by topic id, without topics that do not exist."""
    return {
        image.topics[part.topic].topic_id: frozenset(part.partitions)
        for part in parts
        if part.topic in image.topics and part.partitions
    }


def classic_assignment(assignment: Assignment, subscription: bytes, image: MetadataImage) -> bytes:
    """Return an assignment as bytes for a member of the classic protocol, in the version of its *subscription*.

    The version is 0 if that of the subscription cannot be read.
    """
    parts = [
        TopicPartition(topic=image.topics_by_id[topic_id].name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if topic_id in image.topics_by_id
    ]
    try:
        version = choose_version(subscription)
    except MalformedError:
        version = 0
    return write_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), version)
