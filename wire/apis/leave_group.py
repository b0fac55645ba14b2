"""LeaveGroup (key 13): remove members from a classic group."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    """A member, identified by its member id or its instance id."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", default=None)
    # the reason, for the broker's log (KIP-800)
    reason: str | None = string(versions="5+", nullable="0+", default=None)


class LeaveGroupRequest(Request, api_key=13, versions="0-5", flexible="4+"):
    """Remove one member from its group (up to version 2), or several (from 3)."""

    group_id: str = string(entity=GROUP)
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


class MemberResponse(Struct):
    """The outcome for one member."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+")
    error_code: int = int16()


class LeaveGroupResponse(Response, api_key=13, versions="0-5", flexible="4+"):
    """The outcome for each member."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
