"""JoinGroup (key 11): join a classic group and wait for its next generation."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP, SUBSCRIPTION
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, bytestring, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    """An assignor that the member supports, and its subscription in the format of that assignor."""

    name: str = string()
    metadata: bytes = bytestring(entity=SUBSCRIPTION)  # opaque bytes that only clients read


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    """Join a group, or rejoin it as a member."""

    group_id: str = string(entity=GROUP)
    session_timeout_ms: int = int32()  # the coordinator removes a member that sends no heartbeat for longer
    rebalance_timeout_ms: int = int32(versions="1+", default=-1)  # -1: the session timeout applies
    member_id: str = string()  # empty in the first request of a member
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    protocol_type: str = string()  # the type of the group: consumer, connect, ...
    # assignors in the order of the member's preference
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    # the reason, for the broker's log (KIP-800)
    reason: str | None = string(versions="8+", nullable="0+", default=None)


class JoinGroupResponseMember(Struct):
    """One member and its subscription, from which the leader assigns partitions."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="0+", default=None)
    metadata: bytes = bytestring(entity=SUBSCRIPTION)  # the member's metadata for the chosen protocol


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    """The new generation. Only its leader receives the list of members."""

    throttle_time_ms: int = int32(versions="2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)  # -1 if the request fails
    protocol_type: str | None = string(versions="7+", nullable="0+", default=None)  # null if the request fails
    # the assignor that all members support; null or empty if the request fails
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()  # the member id of the leader
    skip_assignment: bool = boolean(versions="9+")  # true if the leader keeps the existing assignment (KIP-814)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)  # empty unless the member is the leader
