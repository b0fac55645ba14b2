"""ControlledShutdown (key 7): a broker asks a ZooKeeper controller to move its leaders away; gone in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Request, api_key=7, versions="0-3", flexible="3+"):
    """This broker wants to stop."""

    broker_id: int = int32()
    broker_epoch: int = int64(versions="2+", default=-1)


class RemainingPartition(Struct):
    """A partition that found no other leader."""

    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible="3+"):
    """What the broker leads still; it asks again until nothing is left."""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
