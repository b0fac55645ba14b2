"""JoinGroup (key 11): enter a classic group and wait for its next generation."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, bytestring, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    """An assignor the member can work with, and its subscription in the form that assignor reads."""

    name: str = string()
    metadata: bytes = bytestring()


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    """Become, or stay, a member of a group."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(versions="1+", default=-1)  # -1: the session timeout counts
    member_id: str = string()  # empty on first contact
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    protocol_type: str = string()
    # in the order of the member's preference
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(versions="8+", nullable="0+", default=None)


class JoinGroupResponseMember(Struct):
    """One member and its subscription, for the leader to assign partitions to."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    metadata: bytes = bytestring()


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    """The generation that began; only its leader learns who the members are."""

    throttle_time_ms: int = int32(versions="2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)  # -1 with an error
    protocol_type: str | None = string(versions="7+", nullable="0+", default=None)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
