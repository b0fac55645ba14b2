"""ConsumerGroupHeartbeat (key 68): join, stay in and leave a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID, TOPIC_PATTERN
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[int] = array(int32())


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions="0-1", flexible="0+"):
    """Report that the member is alive, and the fields that have changed since its last heartbeat."""

    group_id: str = string(entity=GROUP)
    member_id: str = string()
    # the last epoch received; 0: joins, -1: leaves, -2: leaves as a static member that will return
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)  # the group_instance_id; null: none, or unchanged
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or unchanged
    rebalance_timeout_ms: int = int32(default=-1)  # the time that the member has to revoke partitions; -1: unchanged
    subscribed_topic_names: list[str] | None = array(
        string(entity=TOPIC), nullable="0+", default=None
    )  # null: unchanged
    # an RE2 pattern that the broker matches with topic names; null: unchanged, empty: no pattern any more
    subscribed_topic_regex: str | None = string(versions="1+", nullable="0+", default=None, entity=TOPIC_PATTERN)
    # the assignor: range or uniform; null: the broker's default, or unchanged
    server_assignor: str | None = string(nullable="0+", default=None)
    # the partitions that the member owns; null: unchanged
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


class Assignment(Struct):
    """The target assignment of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions="0-1", flexible="0+"):
    """The next steps for the member."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    member_id: str | None = string(nullable="0+", default=None)  # null if the request fails
    member_epoch: int = int32()  # the epoch to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # the time until the next heartbeat
    assignment: Assignment | None = struct(Assignment, nullable="0+")  # null: unchanged
