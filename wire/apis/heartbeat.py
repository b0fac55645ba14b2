"""Heartbeat (key 12): keep a member of a classic group alive."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP
from kafkacompat.wire.schema import Request, Response, int16, int32, string


class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible="4+"):
    """Report that the member is alive."""

    group_id: str = string(entity=GROUP)
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="0+", default=None)


class HeartbeatResponse(Response, api_key=12, versions="0-4", flexible="4+"):
    """The outcome. An error such as REBALANCE_IN_PROGRESS tells the member to join again."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
