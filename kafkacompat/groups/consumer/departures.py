"""Members that leave or time out, and the change of their group."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from twisted.internet.defer import Deferred

from kafkacompat.groups.consumer.checks import find_member
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.conversion import Conversion
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.group_writer import GroupWriter
from kafkacompat.groups.consumer.member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    MemberTimer,
    as_assignment,
    as_holding,
)
from kafkacompat.groups.consumer.retargeting import increment_epoch
from kafkacompat.groups.consumer.settings import ConsumerGroupSettings
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class Departures:
    """Removes members from consumer groups."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        metadata: ImageHolder,
        conversion: Conversion,
        timeouts: Timeouts,
        storing: GroupWriter,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._conversion = conversion
        self._timeouts = timeouts
        self._storing = storing

    def remove_leaving_member(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
    ) -> Deferred[ErrorCode] | None:
        """Remove a member that leaves; keep the place of a static member that leaves temporarily.

        Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        member = find_member(group.contents, group.group_id, request.instance_id, request.member_id)
        log.debug("Group %s: %s leaves with epoch %d", group.group_id, member.member_id, request.member_epoch)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            return self._leave_temporarily(group, member)
        return self.remove_members(group, [member.member_id])

    def _leave_temporarily(self, group: ConsumerGroup, member: ConsumerMember) -> Deferred[ErrorCode] | None:
        """Keep the place of a static member, which has its session timeout to rejoin, under any id."""
        self._timeouts.cancel(group, member.member_id, MemberTimer.REBALANCE)
        draft = GroupDraft(group.group_id, group.contents)
        # With epoch 0 for each partition, the member may commit under the id that it rejoins with.
        held = as_holding(as_assignment(member.assigned), JOINING_EPOCH)
        draft.set_current_assignment(
            replace(member, member_epoch=STATIC_LEAVING_EPOCH, assigned=held, pending_revocation={})
        )
        return self._storing.apply_and_write(group, draft, [])

    def remove_members(self, group: ConsumerGroup, member_ids: Collection[str]) -> Deferred[ErrorCode] | None:
        """Remove members, so that other members get their partitions."""
        if not member_ids:
            return None
        draft = GroupDraft(group.group_id, group.contents)
        patterns = {group.contents.members[member_id].pattern for member_id in member_ids}
        for member_id in member_ids:
            draft.remove_member(member_id)
        if self._can_become_classic(group, draft.contents):
            return self.make_classic(group, draft.contents, "the last member of the consumer protocol left")
        for pattern in patterns:
            if pattern and pattern not in draft.contents.pattern_members:
                draft.set_pattern(pattern, None)
        increment_epoch(draft, self._metadata.image)
        return self._storing.apply_and_write(group, draft, [])

    def expire_member(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Remove a member whose time is up."""
        if member_id in group.contents.members:
            log.info("Group %s: removing %s: %s", group.group_id, member_id, reason)
            self.remove_members(group, [member_id])

    # Back to the classic protocol

    def _can_become_classic(self, group: ConsumerGroup, contents: GroupContents) -> bool:
        """Return whether only members of the classic protocol are left, and the group may be converted."""
        members = contents.members.values()
        return bool(members) and all(member.classic for member in members) and self.may_become_classic(len(members))

    def may_become_classic(self, size: int) -> bool:
        """Return whether a consumer group of this size may become a classic group."""
        return self._settings.may_downgrade and size <= self._settings.classic_max_size

    def make_classic(self, group: ConsumerGroup, contents: GroupContents, reason: str | None) -> Deferred[ErrorCode]:
        """Replace the group by a classic group with these contents, which rebalances if there is a *reason*."""
        return self._storing.write_conversion(group.shard, self._conversion.make_classic(group, contents, reason))

    def make_empty_classic(self, group: ConsumerGroup) -> None:
        """Replace an empty group by an empty classic group."""
        self._storing.write_conversion(group.shard, self._conversion.make_empty_classic(group))
