"""AlterPartitionReassignments (key 45): start or cancel moves of partitions to other brokers (KIP-455)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string


class ReassignablePartition(Struct):
    """The target replicas of one partition."""

    partition_index: int = int32()
    # brokers, the preferred leader first; null: cancel the ongoing reassignment
    replicas: list[int] | None = array(int32(entity=BROKER), nullable="0+", default=None)


class ReassignableTopic(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Request, api_key=45, versions="0-1", flexible="0+"):
    """Start or cancel reassignments of the given partitions."""

    timeout_ms: int = int32(default=60000)
    # false: the number of replicas must stay the same (KIP-860)
    allow_replication_factor_change: bool = boolean(versions="1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class ReassignableTopicResponse(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Response, api_key=45, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(versions="1+", default=True)  # the value from the request
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
