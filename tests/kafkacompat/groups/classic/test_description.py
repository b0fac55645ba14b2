"""DescribeGroups."""

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.groups.support import GROUP, World, write_topics


def test_a_stable_group_is_described_with_its_members() -> None:
    world = World()
    (member_id,) = world.stable()
    group = world.coordinator.describe(GROUP)
    assert (group.error_code, group.group_id, group.group_state) == (0, GROUP, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (write_topics("t"), member_id.encode())
    assert member.group_instance_id is None


def test_protocols_of_members_are_described_in_stable_groups_only() -> None:
    world = World()
    world.form()
    group = world.coordinator.describe(GROUP)
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert [member.member_metadata for member in group.members] == [b""]


def test_an_unknown_group_is_dead() -> None:
    group = World().coordinator.describe("x")
    assert (group.error_code, group.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert group.error_message == "Group x not found."
