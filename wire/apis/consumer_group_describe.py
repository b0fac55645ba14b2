"""ConsumerGroupDescribe (key 69): the members and assignments of groups of the new protocol (KIP-848)."""

from __future__ import annotations

from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string, struct, uuid


class ConsumerGroupDescribeRequest(Request, api_key=69, versions="0-1", flexible="0+"):
    """Describe these groups."""

    group_ids: list[str] = array(string())
    include_authorized_operations: bool = boolean()  # what the client may do with each group (KIP-430)


class TopicPartitions(Struct):
    """Some partitions of one topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32())


class Assignment(Struct):
    """All that a member reads, or is to read."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Struct):
    """One member of a group."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)  # as group_instance_id
    rack_id: str | None = string(nullable="0+", default=None)  # null: not told
    member_epoch: int = int32()  # the epoch of the assignment that it has
    client_id: str = string()  # what it calls itself
    client_host: str = string()  # the address it came from
    subscribed_topic_names: list[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)  # null: none
    assignment: Assignment = struct(Assignment)  # what it has
    target_assignment: Assignment = struct(Assignment)  # what it shall have when others have given it up
    member_type: int = int8(versions="1+", default=-1)  # 0: of the classic protocol, 1: of the new one; -1: not known


class DescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()  # Empty, Assigning, Reconciling, Stable or Dead
    group_epoch: int = int32()  # counts the changes of members and topics
    assignment_epoch: int = int32()  # the group_epoch that the target assignment was made for
    assignor_name: str = string()  # who made it
    members: list[Member] = array(Member)
    # bits of AclOperation codes; the default means: not asked for
    authorized_operations: int = int32(default=MIN_INT32)


class ConsumerGroupDescribeResponse(Response, api_key=69, versions="0-1", flexible="0+"):
    """Each group."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
