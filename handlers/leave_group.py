"""LeaveGroup (key 13), v0-5: remove members from their group.

v1 adds the throttle time. v3 removes several members, also by instance id (KIP-345); earlier versions remove one. v4 is
flexible, v5 gives a reason for the log.
"""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from kafkacompat.wire.errors import ErrorCode

SEVERAL_MEMBERS_VERSION = 3


def handle_leave_group(
    request: LeaveGroupRequest, context: RequestContext, services: Services
) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
    """Remove the members; for a consumer group, answer when the removal is in the log."""
    is_single = context.api_version < SEVERAL_MEMBERS_VERSION
    members = [MemberIdentity(member_id=request.member_id)] if is_single else request.members
    codes = services.coordinators.groups.leave(request.group_id, members)
    if isinstance(codes, Deferred):
        return Pending(codes.addCallback(partial(_build_response, members, is_single)))
    return _build_response(members, is_single, codes)


def _build_response(
    members: list[MemberIdentity], is_single: bool, codes: ErrorCode | list[ErrorCode]
) -> LeaveGroupResponse:
    if isinstance(codes, ErrorCode):
        return LeaveGroupResponse(error_code=codes)
    if is_single:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code)
            for member, code in zip(members, codes, strict=True)
        ]
    )
