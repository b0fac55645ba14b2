"""Which group a member comes into, and as whom."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import replace

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.consumer.checks import known_member
from kafkacompat.groups.consumer.conversion import Conversion
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import JOINING_EPOCH, ConsumerMember
from kafkacompat.groups.consumer.progress import Change, change_of
from kafkacompat.groups.consumer.records import write
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class Admission:
    """Finds groups and members, and makes those that come to be."""

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
        """An id for a member that has none, in the form of Kafka's."""
        return base64.urlsafe_b64encode(self._random_bytes(16)).decode().rstrip("=")

    # Groups

    def group(self, group_id: str, *, is_joining: bool) -> Change:
        """A change of the group of this name; whoever joins makes a group, or a consumer group of a classic one.

        Raises KafkaError: GROUP_ID_NOT_FOUND, or why it is not known whether there is such a group.
        """
        group = self._registry.find(group_id)
        if isinstance(group, ErrorCode) and group:
            raise KafkaError(group)
        if isinstance(group, ConsumerGroup):
            return change_of(group)
        if not is_joining:
            raise not_found(group_id, group)
        if isinstance(group, AnyGroup):
            return self._converted(group)
        return change_of(ConsumerGroup(group_id, self._registry.shard_for(group_id), self._budget))

    def _converted(self, classic: AnyGroup) -> Change:
        group = ConsumerGroup(classic.group_id, classic.shard, self._budget)
        group.offsets = classic.offsets
        group.replaces = classic
        records = classic.tombstones()
        if classic.is_empty:
            return Change(group, group.contents, Draft(group.group_id, group.contents), records)
        made = self._conversion.consumer_draft(classic)
        records += [write(change) for change in made.changes]
        return Change(group, made.contents, Draft(group.group_id, made.contents), records)

    def take_over(self, group: ConsumerGroup) -> bool:
        """Let a group take the place of the classic one that it was made of, if it was: its members join again then."""
        classic, group.replaces = group.replaces, None
        if classic is None:
            return False
        log.info("group %s: it is a consumer group from now on", group.group_id)
        self._conversion.retire_classic(classic)
        return True

    # Members

    def member(
        self, change: Change, member_id: str, instance_id: str | None, *, may_come_in: bool, is_classic: bool = False
    ) -> ConsumerMember:
        """The member, as it was before its request; with *may_come_in* one that is new, or in the place of another.

        Raises KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
        """
        contents = change.draft.contents
        if not may_come_in:
            return known_member(contents, change.group.group_id, instance_id, member_id)
        existing = contents.static_member(instance_id)
        if existing is None or existing.member_id == member_id:
            return contents.members.get(member_id) or ConsumerMember(member_id)
        if not is_classic and existing.classic is None and not existing.has_left_for_a_while:
            message = f"the instance id {instance_id} belongs to member {existing.member_id}, which has not left"
            raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        newcomer = replace(
            existing, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=JOINING_EPOCH
        )
        change.draft.replace(existing, newcomer)
        return newcomer


def not_found(group_id: str, group: AnyGroup | ErrorCode) -> KafkaError:
    """GROUP_ID_NOT_FOUND."""
    reason = "is no consumer group" if isinstance(group, AnyGroup) else "does not exist"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the group {group_id} {reason}")
