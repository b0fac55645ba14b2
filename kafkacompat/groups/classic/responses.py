"""Responses to JoinGroup and SyncGroup, filled from a group's state."""

from __future__ import annotations

from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.wire.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafkacompat.wire.apis.sync_group import SyncGroupResponse


def build_join_response(
    group: ClassicGroup, member: ClassicMember, *, with_members: bool | None = None
) -> JoinGroupResponse:
    """Return the response to a member of the current generation; the leader's response lists all members."""
    if with_members is None:
        with_members = group.is_leader(member.member_id)
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=_list_members(group) if with_members else [],
    )


def _list_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata_for(group.protocol_name),
        )
        for member in group.members.values()
    ]


def build_sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """Return the response with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )
