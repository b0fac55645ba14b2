"""AlterReplicaLogDirs (key 34): move replicas between the log directories of one broker."""

from __future__ import annotations

from kafkacompat.wire.entities import LOG_DIRECTORY, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    """The partitions of one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class AlterReplicaLogDir(Struct):
    """The partitions to move into one directory."""

    path: str = string(entity=LOG_DIRECTORY)  # an absolute path, one of log.dirs
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Request, api_key=34, versions="0-2", flexible="2+"):
    """Move the replicas of the given partitions."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Struct):
    """The outcome for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Struct):
    """The outcomes for one topic."""

    topic_name: str = string(entity=TOPIC)
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Response, api_key=34, versions="0-2", flexible="2+"):
    """The outcome of starting each move. DescribeLogDirs reports the progress."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
