"""DescribeTopicPartitions (key 75): describe topics in pages, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, TOPIC, TOPIC_ID
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, struct, uuid


class TopicRequest(Struct):
    """A topic to describe."""

    name: str = string(entity=TOPIC)


class Cursor(Struct):
    """The first partition of the next page."""

    topic_name: str = string(entity=TOPIC)
    partition_index: int = int32()


class DescribeTopicPartitionsRequest(Request, api_key=75, versions="0", flexible="0+"):
    """Describe the given topics (all topics if the list is empty), starting at a cursor."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)  # the largest number of partitions in a page
    cursor: Cursor | None = struct(Cursor, nullable="0+")  # null: start at the first topic


class DescribeTopicPartitionsResponsePartition(Struct):
    """The leader and the replicas of one partition."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32(entity=BROKER)  # -1 if there is none
    leader_epoch: int = int32(default=-1)  # -1 if unknown
    replica_nodes: list[int] = array(int32(entity=BROKER))  # brokers in the order of preference
    isr_nodes: list[int] = array(int32(entity=BROKER))  # the brokers in the in-sync replica set
    eligible_leader_replicas: list[int] | None = array(
        int32(entity=BROKER), nullable="0+", default=None
    )  # null if not tracked
    last_known_elr: list[int] | None = array(int32(entity=BROKER), nullable="0+", default=None)  # null if not tracked
    offline_replicas: list[int] = array(int32(entity=BROKER))  # brokers that are down or whose log directory has failed


class DescribeTopicPartitionsResponseTopic(Struct):
    """One topic, or the reason why the broker cannot describe it."""

    error_code: int = int16()
    name: str | None = string(nullable="0+", entity=TOPIC)
    topic_id: bytes = uuid(entity=TOPIC_ID)
    is_internal: bool = boolean()  # internal to the brokers, such as __consumer_offsets
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    # a bit for each AclOperation code; the default if the client did not request it
    topic_authorized_operations: int = int32(default=MIN_INT32)


class DescribeTopicPartitionsResponse(Response, api_key=75, versions="0", flexible="0+"):
    """One page of topics."""

    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = struct(Cursor, nullable="0+")  # null after the last page
