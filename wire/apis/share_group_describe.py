"""ShareGroupDescribe (key 77): DOC"""

from __future__ import annotations

from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, struct, uuid


class ShareGroupDescribeRequest(Request, api_key=77, versions="0-1", flexible="0+"):
    """DOC"""

    group_ids: list[str] = array(string())
    include_authorized_operations: bool = boolean()


class TopicPartitions(Struct):
    """DOC"""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """DOC"""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    """DOC"""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    assignment: Assignment = struct(Assignment)


class DescribedGroup(Struct):
    """DOC"""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=MIN_INT32)


class ShareGroupDescribeResponse(Response, api_key=77, versions="0-1", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
