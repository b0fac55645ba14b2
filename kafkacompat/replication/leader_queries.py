"""The questions that a follower asks its leader beside Fetch: ends of epochs, and offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafkacompat.replication.follower import PartitionKey
from kafkacompat.replication.partition_fetch import PartitionFetch
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST = -1
EARLIEST = -2
"""Timestamps in ListOffsets that stand for the end and the start of the log."""


class LeaderOffset(NamedTuple):
    """An answer to ListOffsets."""

    error_code: int
    offset: int


def build_epoch_request(node_id: int, fetches: Iterable[PartitionFetch]) -> OffsetForLeaderEpochRequest:
    """Ask for the end of each log's last epoch."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for fetch in fetches:
        partition = fetch.partition
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.index, current_leader_epoch=fetch.leader_epoch, leader_epoch=partition.last_epoch
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=node_id, topics=list(topics.values()))


def read_epoch_answers(response: OffsetForLeaderEpochResponse) -> dict[PartitionKey, EpochEndOffset]:
    """Return the answers by partition."""
    return {(topic.topic, answer.partition): answer for topic in response.topics for answer in topic.partitions}


def build_offset_request(node_id: int, fetches: Iterable[PartitionFetch], timestamp: int) -> ListOffsetsRequest:
    """Ask for the end (LATEST) or the start (EARLIEST) of each leader's log."""
    topics: dict[str, ListOffsetsTopic] = {}
    for fetch in fetches:
        partition = fetch.partition
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.index, current_leader_epoch=fetch.leader_epoch, timestamp=timestamp
            )
        )
    return ListOffsetsRequest(replica_id=node_id, topics=list(topics.values()))


def read_offset_answers(response: ListOffsetsResponse) -> dict[PartitionKey, LeaderOffset]:
    """Return the answers by partition."""
    return {
        (topic.name, answer.partition_index): LeaderOffset(answer.error_code, _read_offset(answer))
        for topic in response.topics
        for answer in topic.partitions
    }


def _read_offset(answer: ListOffsetsPartitionResponse) -> int:
    """Return the offset; version 0 has a list of one."""
    return answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
