"""SyncGroup (key 14): the leader of a classic group hands out the assignments."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, bytestring, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    """What the leader assigned to one member."""

    member_id: str = string()
    assignment: bytes = bytestring()  # read by the clients alone


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible="4+"):
    """Ask for the own assignment; the leader brings everybody's along."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="0+", default=None)
    # as JoinGroup answered; null: do not check
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None)
    # as JoinGroup answered; null: do not check
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)  # empty unless this is the leader


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible="4+"):
    """The assignment of the member that asked."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None)  # null if the request fails
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None)  # null if the request fails
    assignment: bytes = bytestring()  # as the leader wrote it
