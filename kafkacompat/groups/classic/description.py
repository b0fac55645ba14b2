"""DescribeGroups: one classic group with its members."""

from __future__ import annotations

from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.state import STABLE
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribedGroupMember


def describe_classic_group(group: ClassicGroup) -> DescribedGroup:
    """Describe a classic group. Only a stable group shows its protocol and the metadata of its members."""
    protocol = group.protocol_name if group.state is STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[_describe_member(member, protocol) for member in group.members.values()],
    )


def _describe_member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata_for(protocol) if protocol else b"",
        member_assignment=member.assignment,
    )
