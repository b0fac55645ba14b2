"""AssignReplicasToDirs (key 73): a broker reports the log directories of its replicas to the controller (KIP-858)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, int64, uuid


class PartitionData(Struct):
    """One replica."""

    partition_index: int = int32()


class TopicData(Struct):
    """The replicas of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionData] = array(PartitionData)


class DirectoryData(Struct):
    """The replicas in one log directory."""

    id: bytes = uuid()  # the id of the directory, from its meta.properties
    topics: list[TopicData] = array(TopicData)


class AssignReplicasToDirsRequest(Request, api_key=73, versions="0", flexible="0+"):
    """Report the log directory of each replica."""

    broker_id: int = int32(entity=BROKER)
    broker_epoch: int = int64(default=-1)  # the epoch of the broker's registration
    directories: list[DirectoryData] = array(DirectoryData)


class PartitionResult(Struct):
    """The outcome for one replica."""

    partition_index: int = int32()
    error_code: int = int16()


class TopicResult(Struct):
    """The outcomes for one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[PartitionResult] = array(PartitionResult)


class DirectoryResult(Struct):
    """The outcomes for one log directory."""

    id: bytes = uuid()  # the id of the directory, as in the request
    topics: list[TopicResult] = array(TopicResult)


class AssignReplicasToDirsResponse(Response, api_key=73, versions="0", flexible="0+"):
    """The outcome for each log directory."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryResult] = array(DirectoryResult)
