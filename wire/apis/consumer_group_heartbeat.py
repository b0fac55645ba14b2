"""ConsumerGroupHeartbeat (key 68): join, stay in and leave a group of the new protocol (KIP-848)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


class ConsumerGroupHeartbeatRequest(Request, api_key=68, versions="0-1", flexible="0+"):
    """I live; what has changed since my last heartbeat stands here."""

    group_id: str = string()
    member_id: str = string()
    # 0: joins, -1: leaves, -2: leaves as a static member that will be back, else the last one received
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)  # as group_instance_id; null: none, or as before
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or as before
    rebalance_timeout_ms: int = int32(default=-1)  # how long it may take to give partitions up; -1: as before
    subscribed_topic_names: list[str] | None = array(string(), nullable="0+", default=None)  # null: as before
    # a pattern for the broker to look for, of RE2; null: as before, empty: none any more
    subscribed_topic_regex: str | None = string(versions="1+", nullable="0+", default=None)
    # who assigns: range, uniform; null: the broker's first choice, or as before
    server_assignor: str | None = string(nullable="0+", default=None)
    # what it holds now; null: as before
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


class Assignment(Struct):
    """All that a member shall read."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Response, api_key=68, versions="0-1", flexible="0+"):
    """What the member is to do."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)  # null with an error
    member_epoch: int = int32()  # to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # until the next heartbeat
    assignment: Assignment | None = struct(Assignment, nullable="0+")  # null: as before
