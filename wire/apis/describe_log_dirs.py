"""DescribeLogDirs (key 35): the log directories of one broker and the logs in them."""

from __future__ import annotations

from kafkacompat.wire.entities import LOG_DIRECTORY, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    """The partitions of one topic."""

    topic: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class DescribeLogDirsRequest(Request, api_key=35, versions="0-5", flexible="2+"):
    """Describe the log directories and the logs of the given partitions."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")  # null: all topics


class DescribeLogDirsPartition(Struct):
    """One log."""

    partition_index: int = int32()
    partition_size: int = int64()  # the size of its segments in bytes
    # records between the log's end and the high watermark (a future log: the current log's end); -1 if unknown
    offset_lag: int = int64()
    is_future_key: bool = boolean()  # the log is a future log, which will replace the current one in another directory


class DescribeLogDirsTopic(Struct):
    """The logs of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    """One directory. The error of an offline one is KAFKA_STORAGE_ERROR."""

    error_code: int = int16()
    log_dir: str = string(entity=LOG_DIRECTORY)  # the absolute path
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1)  # bytes of its volume; -1 if unknown
    usable_bytes: int = int64(versions="4+", default=-1)  # bytes of its volume; -1 if unknown
    is_cordoned: bool = boolean(versions="5+")  # the directory accepts no new replicas (KIP-1066)


class DescribeLogDirsResponse(Response, api_key=35, versions="0-5", flexible="2+"):
    """The log directories of the broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+")
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
