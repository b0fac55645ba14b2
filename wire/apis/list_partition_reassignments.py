"""ListPartitionReassignments (key 46): the ongoing reassignments of partitions (KIP-455)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partition_indexes: list[int] = array(int32())


class ListPartitionReassignmentsRequest(Request, api_key=46, versions="0", flexible="0+"):
    """List the ongoing reassignments of the given partitions."""

    timeout_ms: int = int32(default=60000)
    # null: all topics
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    """One partition that is being reassigned."""

    partition_index: int = int32()
    replicas: list[int] = array(int32(entity=BROKER))  # all replicas, including those being added or removed
    adding_replicas: list[int] = array(int32(entity=BROKER))  # empty if there are none
    removing_replicas: list[int] = array(int32(entity=BROKER))  # empty if there are none


class OngoingTopicReassignment(Struct):
    """The partitions of one topic that are being reassigned."""

    name: str = string(entity=TOPIC)
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Response, api_key=46, versions="0", flexible="0+"):
    """The partitions that are being reassigned."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
