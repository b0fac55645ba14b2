"""Heartbeat (key 12), v0-4: keep a member in its group.

v1 adds the throttle time, v3 the instance id of static members (KIP-345), v4 is flexible.
"""

from __future__ import annotations

from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle_heartbeat(request: HeartbeatRequest, context: RequestContext, services: Services) -> HeartbeatResponse:
    """Extend the member's session."""
    identity = SenderIdentity(request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=services.coordinators.groups.heartbeat(request.group_id, identity))
