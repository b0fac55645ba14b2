"""DeleteRecords (key 21): delete the records before an offset."""

from __future__ import annotations

from kafkacompat.wire.entities import TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    """The first offset to keep in one partition."""

    partition_index: int = int32()
    offset: int = int64()  # -1: the high watermark


class DeleteRecordsTopic(Struct):
    """The first offsets to keep in one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Request, api_key=21, versions="0-2", flexible="2+"):
    """Delete the records before the given offsets."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


class DeleteRecordsPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    low_watermark: int = int64()  # the new start of the log; -1 if the request fails
    error_code: int = int16()


class DeleteRecordsTopicResult(Struct):
    """The outcomes for one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Response, api_key=21, versions="0-2", flexible="2+"):
    """The new start offsets of the logs."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
