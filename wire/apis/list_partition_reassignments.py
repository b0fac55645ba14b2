"""ListPartitionReassignments (key 46): which partitions are moving (KIP-455)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    """The partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32())


class ListPartitionReassignmentsRequest(Request, api_key=46, versions="0", flexible="0+"):
    """Which of these partitions are moving?"""

    timeout_ms: int = int32(default=60000)
    # null: all
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    """One partition that moves."""

    partition_index: int = int32()
    replicas: list[int] = array(int32())  # with those being added and those being removed
    adding_replicas: list[int] = array(int32())  # empty: none
    removing_replicas: list[int] = array(int32())  # empty: none


class OngoingTopicReassignment(Struct):
    """The partitions of one topic that move."""

    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Response, api_key=46, versions="0", flexible="0+"):
    """The partitions that move."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
