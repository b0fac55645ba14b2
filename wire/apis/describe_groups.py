"""DescribeGroups (key 15): the state and the members of classic groups."""

from __future__ import annotations

from kafkacompat.wire.entities import ASSIGNMENT, GROUP, SUBSCRIPTION, TEXT
from kafkacompat.wire.primitives import MIN_INT32
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, bytestring, int16, int32, string


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible="5+"):
    """Describe the given groups."""

    groups: list[str] = array(string(entity=GROUP))  # the ids of the groups
    # adds the operations that the client may perform on each group (KIP-430)
    include_authorized_operations: bool = boolean(versions="3+")


class DescribedGroupMember(Struct):
    """One member, with its subscription and its assignment."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()  # the address that the member joined from, after a slash
    member_metadata: bytes = bytestring(
        entity=SUBSCRIPTION
    )  # the metadata of its JoinGroup request; empty unless the group is Stable
    member_assignment: bytes = bytestring(entity=ASSIGNMENT)  # the assignment of the leader's SyncGroup request


class DescribedGroup(Struct):
    """One group. The state of a group that does not exist is Dead."""

    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="0+", default=None, entity=TEXT)
    group_id: str = string(entity=GROUP)
    group_state: str = string()  # PreparingRebalance, CompletingRebalance, Stable, Empty or Dead
    protocol_type: str = string()  # consumer, connect, ...; empty for a group that only commits offsets
    protocol_data: str = string()  # the assignor in use; empty unless the group is Stable
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    # a bit for each AclOperation code; the default if the client did not request it
    authorized_operations: int = int32(versions="3+", default=MIN_INT32)


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible="5+"):
    """The descriptions of the groups."""

    throttle_time_ms: int = int32(versions="1+")
    groups: list[DescribedGroup] = array(DescribedGroup)
