"""ListOffsets (key 2): look up offsets by timestamp, or the first and the last offset."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    """The lookup in one partition."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(versions="4+", default=-1)  # -1: the receiver does not check it
    # in ms since 1970, to find the first record at or after it, or one of
    # -1: latest, -2: earliest, -3: the record with the largest timestamp, -4: earliest on local disk,
    # -5: last in remote storage (KIP-1005), -6: first not yet in remote storage (KIP-1023)
    timestamp: int = int64()
    max_num_offsets: int = int32(versions="0", default=1)  # the largest number of offsets to return


class ListOffsetsTopic(Struct):
    """The lookups in one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Request, api_key=2, versions="0-11", flexible="6+"):
    """Look up one offset in each of the given partitions."""

    replica_id: int = int32(entity=BROKER)  # -1 for consumers
    isolation_level: int = int8(versions="2+")  # 0: read_uncommitted, 1: read_committed
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+")  # the time limit of a lookup in remote storage


class ListOffsetsPartitionResponse(Struct):
    """The offset found in one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    # start offsets of segments and the log end offset, newest first
    old_style_offsets: list[int] = array(int64(), versions="0")
    # the record's timestamp; -1 if there is no match or the request names a position, such as latest
    timestamp: int = int64(versions="1+", default=-1)
    offset: int = int64(versions="1+", default=-1)  # -1 if there is no match
    leader_epoch: int = int32(versions="4+", default=-1)  # -1 if unknown


class ListOffsetsTopicResponse(Struct):
    """The offsets found in one topic."""

    name: str = string(entity=TOPIC)
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Response, api_key=2, versions="0-11", flexible="6+"):
    """The offsets found."""

    throttle_time_ms: int = int32(versions="2+")
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
