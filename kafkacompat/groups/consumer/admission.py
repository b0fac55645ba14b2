"""Finding the group and the member of a request, and creating new ones."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import replace

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.consumer.checks import find_member
from kafkacompat.groups.consumer.conversion import Conversion
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import JOINING_EPOCH, ConsumerMember
from kafkacompat.groups.consumer.progress import GroupChange, start_change
from kafkacompat.groups.consumer.records import as_record
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class Admission:
    """Finds groups and members, and creates those that join."""

    def __init__(
        self,
        registry: GroupRegistry,
        budget: MemoryBudget,
        conversion: Conversion,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._registry = registry
        self._budget = budget
        self._conversion = conversion
        self._random_bytes = random_bytes

    def new_member_id(self) -> str:
        """Return an id for a member that has none, in Kafka's format."""
        return base64.urlsafe_b64encode(self._random_bytes(16)).decode().rstrip("=")

    # Groups

    def find_or_create_group(self, group_id: str, *, is_joining: bool) -> GroupChange:
        """Return a change of a group. A member that joins creates the group, or converts a classic group.

        Raises KafkaError: GROUP_ID_NOT_FOUND, or the reason why this broker cannot tell whether the group exists.
        """
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode) and group:
            raise KafkaError(group)
        if isinstance(group, ConsumerGroup):
            return start_change(group)
        if not is_joining:
            raise group_not_found_error(group_id, group)
        if isinstance(group, AnyGroup):
            return self._convert_classic(group)
        if refusal := self._registry.check_new(group_id):
            reason = "the limit of groups is reached: delete a group, or ask for a higher limit"
            raise KafkaError(refusal, reason)
        return start_change(ConsumerGroup(group_id, self._registry.shard_for(group_id), self._budget))

    def _convert_classic(self, classic: AnyGroup) -> GroupChange:
        group = ConsumerGroup(classic.group_id, classic.shard, self._budget)
        group.offsets = classic.offsets
        group.replaces = classic
        records = classic.tombstones()
        if classic.is_empty:
            return GroupChange(group, group.contents, GroupDraft(group.group_id, group.contents), records)
        made = self._conversion.consumer_draft(classic)
        records += [as_record(change) for change in made.changes]
        return GroupChange(group, made.contents, GroupDraft(group.group_id, made.contents), records)

    def retire_replaced_group(self, group: ConsumerGroup) -> bool:
        """Remove the classic group that *group* was converted from, if any: its members have to rejoin. Returns whether there was one."""
        classic, group.replaces = group.replaces, None
        if classic is None:
            return False
        log.info("Group %s becomes a consumer group", group.group_id)
        self._conversion.retire_classic(classic)
        return True

    # Members

    def find_or_create_member(
        self, change: GroupChange, member_id: str, instance_id: str | None, *, may_join: bool, is_classic: bool = False
    ) -> ConsumerMember:
        """Return the member as it was before its request. With *may_join*, it may be new, or replace a static member.

        Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
        """
        contents = change.draft.contents
        if not may_join:
            return find_member(contents, change.group.group_id, instance_id, member_id)
        existing = contents.find_static_member(instance_id)
        if existing is None or existing.member_id == member_id:
            return contents.members.get(member_id) or ConsumerMember(member_id)
        if not is_classic and existing.classic is None and not existing.has_left_temporarily:
            message = f"instance id {instance_id} belongs to member {existing.member_id}, which has not left"
            raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        newcomer = replace(
            existing, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH
        )
        change.draft.replace_member(existing, newcomer)
        return newcomer


def group_not_found_error(group_id: str, group: AnyGroup | ErrorCode) -> KafkaError:
    """Return the error GROUP_ID_NOT_FOUND."""
    reason = "is not a consumer group" if isinstance(group, AnyGroup) else "does not exist"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} {reason}")
