"""SyncGroup (key 14): distribute the leader's assignments to the members of a classic group."""

from __future__ import annotations

from kafkacompat.wire.entities import ASSIGNMENT, GROUP
from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    """The leader's assignment for one member."""

    member_id: str = string()
    assignment: bytes = bytestring(entity=ASSIGNMENT)  # opaque bytes that only clients read


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible="4+"):
    """Request the member's assignment. The leader sends the assignments of all members."""

    group_id: str = string(entity=GROUP)
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="0+", default=None)
    # as returned by JoinGroup; null: the receiver does not check it
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None)
    # as returned by JoinGroup; null: the receiver does not check it
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None)
    # empty unless the member is the leader
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible="4+"):
    """The assignment of the requesting member."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None)  # null if the request fails
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None)  # null if the request fails
    assignment: bytes = bytestring(entity=ASSIGNMENT)  # the bytes that the leader sent
