"""ControlledShutdown (key 7): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Request, api_key=7, versions="0-3", flexible="3+"):
    """DOC"""

    broker_id: int = int32()
    broker_epoch: int = int64(versions="2+", default=-1)


class RemainingPartition(Struct):
    """DOC"""

    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Response, api_key=7, versions="0-3", flexible="3+"):
    """DOC"""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
