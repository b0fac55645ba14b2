"""DescribeLogDirs (key 35): the log directories of one broker, and what lies in them."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32())


class DescribeLogDirsRequest(Request, api_key=35, versions="0-5", flexible="2+"):
    """Describe the directories, and these partitions in them."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")  # null: all


class DescribeLogDirsPartition(Struct):
    """One log."""

    partition_index: int = int32()
    partition_size: int = int64()  # bytes of its segments
    # records it is behind the high watermark, a future log: behind the current one; -1 when not known
    offset_lag: int = int64()
    is_future_key: bool = boolean()  # being filled, to replace the log in another directory


class DescribeLogDirsTopic(Struct):
    """The logs of one topic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    """One directory; KAFKA_STORAGE_ERROR where it is offline."""

    error_code: int = int16()
    log_dir: str = string()  # absolute path
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1)  # of its volume; -1 when not known
    usable_bytes: int = int64(versions="4+", default=-1)  # of its volume; -1 when not known
    is_cordoned: bool = boolean(versions="5+")  # takes no new replicas (KIP-1066)


class DescribeLogDirsResponse(Response, api_key=35, versions="0-5", flexible="2+"):
    """The directories."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+")
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
