"""CreatePartitions (key 37): give topics more partitions."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """The brokers that one of the new partitions shall lie on."""

    broker_ids: list[int] = array(int32())  # the preferred leader first


class CreatePartitionsTopic(Struct):
    """How many partitions one topic shall have."""

    name: str = string()
    count: int = int32()  # in all, with those it has
    # null: the controller places the replicas
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


class CreatePartitionsRequest(Request, api_key=37, versions="0-3", flexible="2+"):
    """Let these topics grow."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Struct):
    """The outcome for one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


class CreatePartitionsResponse(Response, api_key=37, versions="0-3", flexible="2+"):
    """Which topics have grown."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
