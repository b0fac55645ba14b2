"""ShareGroupHeartbeat (key 76): join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, struct, uuid


class ShareGroupHeartbeatRequest(Request, api_key=76, versions="0-1", flexible="0+"):
    """I live; what has changed since my last heartbeat stands here."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()  # 0: joins, -1: leaves, else the last one received
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or as before
    subscribed_topic_names: list[str] | None = array(string(), nullable="0+", default=None)  # null: as before


class TopicPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """All that a member shall read."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Response, api_key=76, versions="0-1", flexible="0+"):
    """What the member is to do."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)  # null with an error
    member_epoch: int = int32()  # to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # until the next heartbeat
    assignment: Assignment | None = struct(Assignment, nullable="0+")  # null: as before
