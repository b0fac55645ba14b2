"""ControlledShutdown (key 7): ask a ZooKeeper controller to move a broker's leaderships; removed in Kafka 4.0."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Request, api_key=7, versions="0-3", flexible="3+"):
    """Announce that the broker is about to shut down."""

    broker_id: int = int32(entity=BROKER)
    broker_epoch: int = int64(versions="2+", default=-1)


class RemainingPartition(Struct):
    """A partition that the controller found no other leader for."""

    topic_name: str = string(entity=TOPIC)
    partition_index: int = int32()


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible="3+"):
    """The partitions that the broker still leads. The broker repeats the request until none are left."""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
