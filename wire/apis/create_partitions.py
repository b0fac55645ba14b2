"""CreatePartitions (key 37): add partitions to topics."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TEXT, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """The brokers for the replicas of one new partition."""

    broker_ids: list[int] = array(int32(entity=BROKER))  # replicas in order, the preferred leader first


class CreatePartitionsTopic(Struct):
    """The new number of partitions of one topic."""

    name: str = string(entity=TOPIC)
    count: int = int32()  # the total, including the existing partitions
    # null: the controller places the replicas
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible="2+"):
    """Add partitions to the given topics."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Struct):
    """The outcome for one topic."""

    name: str = string(entity=TOPIC)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible="2+"):
    """The outcome for each topic."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
