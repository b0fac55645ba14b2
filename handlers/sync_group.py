"""SyncGroup (key 14), v0-5: receive this generation's assignment; the leader sends it.

v1 adds the throttle time, v3 the instance id of static members (KIP-345), v4 is flexible. v5 names the protocol, which
exposes a member that has missed a rebalance (KIP-559).
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode

PROTOCOL_VERSION = 5


def handle_sync_group(
    request: SyncGroupRequest, context: RequestContext, services: Services
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    """Return the member's assignment once the leader has sent it."""
    is_unnamed = request.protocol_type is None or request.protocol_name is None
    if is_unnamed and context.api_version >= PROTOCOL_VERSION:
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    answer = services.coordinators.groups.sync(request)
    return Pending(answer) if isinstance(answer, Deferred) else answer
