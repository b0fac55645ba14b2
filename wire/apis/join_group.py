"""JoinGroup (key 11): enter a classic group and wait for its next generation."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, bytestring, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    """An assignor the member can work with, and its subscription in the form that assignor reads."""

    name: str = string()
    metadata: bytes = bytestring()  # read by the clients alone


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    """Become, or stay, a member of a group."""

    group_id: str = string()
    session_timeout_ms: int = int32()  # without a heartbeat for so long, the member is out
    rebalance_timeout_ms: int = int32(versions="1+", default=-1)  # -1: the session timeout counts
    member_id: str = string()  # empty on first contact
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    protocol_type: str = string()  # consumer, connect, ...
    # in the order of the member's preference
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(versions="8+", nullable="0+", default=None)  # why, for the broker's log (KIP-800)


class JoinGroupResponseMember(Struct):
    """One member and its subscription, for the leader to assign partitions to."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    metadata: bytes = bytestring()  # as it came, for the protocol chosen


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    """The generation that began; only its leader learns who the members are."""

    throttle_time_ms: int = int32(versions="2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)  # -1 if the request fails
    protocol_type: str | None = string(versions="7+", nullable="0+", default=None)  # null if the request fails
    protocol_name: str | None = string(nullable="7+")  # the assignor that all of them know; null or empty with an error
    leader: str = string()  # member id
    skip_assignment: bool = boolean(versions="9+")  # the leader need not assign, all is as it was (KIP-814)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)  # empty unless this is the leader
