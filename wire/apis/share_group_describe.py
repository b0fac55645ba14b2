"""ShareGroupDescribe (key 77): the members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, TEXT, TOPIC, TOPIC_ID
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, string, struct, uuid


class ShareGroupDescribeRequest(Request, api_key=77, versions="0-1", flexible="0+"):
    """Describe the given groups."""

    group_ids: list[str] = array(string(entity=GROUP))
    # adds the operations that the client may perform on each group (KIP-430)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid(entity=TOPIC_ID)
    topic_name: str = string(entity=TOPIC)
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """The assignment of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    """One member of a group."""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)  # null if not reported
    member_epoch: int = int32()  # the epoch of its current assignment
    client_id: str = string()  # the client id that the member reports
    client_host: str = string()  # the address that the member connects from
    subscribed_topic_names: list[str] = array(string(entity=TOPIC))
    assignment: Assignment = struct(Assignment)


class DescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, entity=TEXT)
    group_id: str = string(entity=GROUP)
    group_state: str = string()  # Empty, Stable or Dead
    group_epoch: int = int32()  # raised with each change of members or topics
    assignment_epoch: int = int32()  # the group_epoch of the assignment
    assignor_name: str = string()  # the assignor that computed it
    members: list[Member] = array(Member)
    # a bit for each AclOperation code; the default if the client did not request it
    authorized_operations: int = int32(default=MIN_INT32)


class ShareGroupDescribeResponse(Response, api_key=77, versions="0-1", flexible="0+"):
    """The descriptions of the groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
