"""DescribeGroups (key 15): state and members of classic groups."""

from __future__ import annotations

from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, bytestring, int16, int32, string


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible="5+"):
    """Describe these groups."""

    groups: list[str] = array(string())  # ids
    include_authorized_operations: bool = boolean(versions="3+")  # what the client may do with each (KIP-430)


class DescribedGroupMember(Struct):
    """One member, with its subscription and its assignment."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()  # the address it joined from, with a slash in front
    member_metadata: bytes = bytestring()  # as JoinGroup brought it; empty unless Stable
    member_assignment: bytes = bytestring()  # as SyncGroup brought it


class DescribedGroup(Struct):
    """One group; a group that does not exist is described as Dead."""

    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()  # PreparingRebalance, CompletingRebalance, Stable, Empty or Dead
    protocol_type: str = string()  # consumer, connect, ...; empty: offsets only
    protocol_data: str = string()  # the assignor in use; empty unless Stable
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    # bits of AclOperation codes; the default means: not asked for
    authorized_operations: int = int32(versions="3+", default=MIN_INT32)


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible="5+"):
    """The groups described."""

    throttle_time_ms: int = int32(versions="1+")
    groups: list[DescribedGroup] = array(DescribedGroup)
