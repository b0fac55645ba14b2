"""ShareGroupHeartbeat (key 76): join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string, struct, uuid


class ShareGroupHeartbeatRequest(Request, api_key=76, versions="0-1", flexible="0+"):
    """Report that the member is alive, and the fields that have changed since its last heartbeat."""

    group_id: str = string(entity=GROUP)
    member_id: str = string()
    member_epoch: int = int32()  # the last epoch received; 0: joins, -1: leaves
    rack_id: str | None = string(nullable="0+", default=None)  # null: none, or unchanged
    subscribed_topic_names: list[str] | None = array(
        string(entity=TOPIC), nullable="0+", default=None
    )  # null: unchanged


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """The assignment of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Response, api_key=76, versions="0-1", flexible="0+"):
    """The next steps for the member."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    member_id: str | None = string(nullable="0+", default=None)  # null if the request fails
    member_epoch: int = int32()  # the epoch to send with the next heartbeat
    heartbeat_interval_ms: int = int32()  # the time until the next heartbeat
    assignment: Assignment | None = struct(Assignment, nullable="0+")  # null: unchanged
