"""A consumer group: its contents, which the log holds, and the state that only this coordinator has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from kafkacompat.groups.any_group import AnyGroup, SenderIdentity
from kafkacompat.groups.classic_protocol import CONSUMER_PROTOCOL_TYPE
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.member import ConsumerMember, MemberTimer
from kafkacompat.groups.consumer.records import ConsumerGroupRecordKey, as_record
from kafkacompat.patterns import Pattern
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.coordination.coordinator_log import Record
    from kafkacompat.coordination.memory_budget import MemoryBudget
    from kafkacompat.coordination.shard import Shard
    from kafkacompat.metadata.image import MetadataImage
    from kafkacompat.timers import DelayedCall
    from kafkacompat.wire.schema import Message


NO_EPOCH = -1

TopicFilter: TypeAlias = "Callable[[str], bool]"
"""Returns whether a client may see a topic."""
CompilePattern: TypeAlias = "Callable[[str], TopicFilter]"
"""Returns what a pattern matches; raises PatternError. The patterns of an instance's clients match its topics only, by other names."""


def compile_pattern(text: str) -> TopicFilter:
    """Return what a pattern of a client of the whole cluster matches; raises PatternError."""
    return Pattern(text).matches


class ConsumerGroup(AnyGroup):
    """A group of the consumer protocol.

    ``counted_bytes`` is the group's part of the memory budget. ``checked_image`` is the metadata that the group's epoch was last
    compared with. ``may_see`` and ``compile_pattern`` decide which topics its patterns match, by the rights and the instance of the last
    sender of a heartbeat. ``writes_in_flight`` counts the changes that the log has neither accepted nor rejected yet, ``refusals`` those
    that it rejected. ``replaces`` is the classic group that this one was converted from, until it replaces it.
    """

    TYPE = "consumer"

    def __init__(self, group_id: str, shard: Shard, budget: MemoryBudget) -> None:
        super().__init__(group_id, shard)
        self.is_logged = True
        self.timers: dict[tuple[MemberTimer, str], DelayedCall] = {}
        self.checked_image: MetadataImage | None = None
        self.writes_in_flight = 0
        self.refusals = 0
        self.replaces: AnyGroup | None = None
        self.may_see: TopicFilter | None = None
        self.compile_pattern: CompilePattern = compile_pattern
        self.is_resolving = False
        self.resolved_topics_version = -1
        self.counted_bytes = 0
        self._budget = budget
        self._contents = GroupContents()

    @property
    def contents(self) -> GroupContents:
        """The state of the group that the log holds, or will hold."""
        return self._contents

    @contents.setter
    def contents(self, contents: GroupContents) -> None:
        self._contents = contents
        self._count_memory(contents.size_bytes)

    def replay(self, key: ConsumerGroupRecordKey, value: Message | None) -> None:
        """Apply a record that was read from the log."""
        self._contents.apply(key, value)
        self._count_memory(self._contents.size_bytes)

    def _count_memory(self, size_bytes: int) -> None:
        self._budget.used_bytes += size_bytes - self.counted_bytes
        self.counted_bytes = size_bytes

    def remove_all_members(self) -> None:
        """Remove all members, stop their timers and release the memory."""
        for timer in self.timers.values():
            if timer.active():
                timer.cancel()
        self.timers.clear()
        if self._contents.members:
            self._contents = GroupContents()
        self._count_memory(0)

    # State

    @property
    def state_name(self) -> str:
        """See AnyGroup."""
        contents = self._contents
        if not contents.members:
            return "Empty"
        if contents.epoch > contents.assignment_epoch:
            return "Assigning"
        is_stable = all(member.is_reconciled_to(contents.assignment_epoch) for member in contents.members.values())
        return "Stable" if is_stable else "Reconciling"

    @property
    def is_empty(self) -> bool:
        """See AnyGroup."""
        return not self._contents.members

    @property
    def member_count(self) -> int:
        """See AnyGroup."""
        return len(self._contents.members)

    @property
    def has_pending_members(self) -> bool:
        """See AnyGroup. Members join with their first request."""
        return False

    @property
    def listed_protocol_type(self) -> str:
        """See AnyGroup."""
        return CONSUMER_PROTOCOL_TYPE

    @property
    def is_of_consumers(self) -> bool:
        """See AnyGroup."""
        return True

    def is_subscribed(self, topic: str) -> bool:
        """See AnyGroup."""
        contents = self._contents
        return any(topic in topics for topics in contents.subscriptions) or any(
            topic in pattern.topics for pattern in contents.patterns.values()
        )

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """See AnyGroup."""
        return commit_timestamp_ms

    def tombstones(self) -> list[Record]:
        """See AnyGroup."""
        draft = GroupDraft(self.group_id, self._contents)
        draft.delete_group()
        return [as_record(change) for change in draft.changes]

    def restore_deleted(self) -> None:
        """See AnyGroup. The group still has its contents."""
        self._count_memory(self._contents.size_bytes)

    # What is accepted

    def check_commit(self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]]) -> ErrorCode:
        """See AnyGroup. A member with an older epoch may commit for partitions that it was assigned by then (KIP-1251)."""
        if identity.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        member = self._contents.members.get(identity.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.classic is None and not identity.knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        return _check_epoch(member, identity.generation_id, partitions)

    def check_commit_in_transaction(
        self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        """See AnyGroup; a member's epoch stands where a generation does, and old ones are as good as in `check_commit`."""
        if (identity.is_nobody and identity.generation_id == NO_EPOCH) or (
            identity.generation_id < 0 and self.is_empty
        ):
            return ErrorCode.NONE
        member = self._contents.members.get(identity.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _check_epoch(member, identity.generation_id, partitions) and ErrorCode.ILLEGAL_GENERATION

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """See AnyGroup."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self._contents.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member.member_epoch == member_epoch else stale_epoch_error(member)

    # Members of the classic protocol

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols may join: all members of the classic protocol have to support one of them."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        known = [member.classic.protocols for member in self._contents.members.values() if member.classic]
        supported = Counter(name for protocols in known for name in {name for name, _ in protocols})
        return any(supported[name] == len(known) for name in names)

    def __repr__(self) -> str:
        return f"<consumer group {self.group_id!r}: {self.state_name}, epoch {self._contents.epoch}>"


def _check_epoch(member: ConsumerMember, epoch: int, partitions: Iterable[tuple[bytes, int]]) -> ErrorCode:
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    is_older = epoch < member.member_epoch
    return (
        ErrorCode.NONE
        if is_older and all(_was_assigned(member, *partition, epoch) for partition in partitions)
        else stale_epoch_error(member)
    )


def stale_epoch_error(member: ConsumerMember) -> ErrorCode:
    """Return the code for a member that names another epoch than its own."""
    return ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH


def _was_assigned(member: ConsumerMember, topic_id: bytes, partition: int, epoch: int) -> bool:
    since = member.assignment_epoch(topic_id, partition)
    return since is not None and since <= epoch
