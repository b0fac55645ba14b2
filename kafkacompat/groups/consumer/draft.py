"""A planned change of a consumer group: records, applied to a copy of its contents before the log has them."""

from __future__ import annotations

from kafkacompat.groups.consumer.contents import GroupContents, ResolvedPattern
from kafkacompat.groups.consumer.member import Assignment, ConsumerMember
from kafkacompat.groups.consumer.records import (
    ConsumerGroupRecordKey,
    GroupKey,
    GroupValue,
    MemberCurrentKey,
    MemberKey,
    MemberTargetKey,
    PartitionMetadataKey,
    PatternKey,
    PatternValue,
    RecordChange,
    TargetKey,
    TargetValue,
    build_current_value,
    build_member_value,
    build_target_value,
)
from kafkacompat.wire.schema import Message


class GroupDraft:
    """The future contents of a group, and the ``changes`` that lead to them, in the order of Kafka's records."""

    def __init__(self, group_id: str, contents: GroupContents) -> None:
        self.group_id = group_id
        self.changes: list[RecordChange] = []
        self._removed: list[str] = []
        self._original = contents
        self._contents = contents

    @property
    def contents(self) -> GroupContents:
        """The future contents of the group. The caller must not change them."""
        return self._contents

    def _apply(self, key: ConsumerGroupRecordKey, value: Message | None) -> None:
        if self._contents is self._original:
            self._contents = self._original.copy()
        self.changes.append((key, value))
        self._contents.apply(key, value)

    @property
    def removed_members(self) -> list[str]:
        """The ids of the members that the change removes."""
        return [member_id for member_id in self._removed if member_id not in self._contents.members]

    # The group

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Set the epoch of the group."""
        self._apply(GroupKey(group_id=self.group_id), GroupValue(epoch=epoch, metadata_hash=metadata_hash))

    def set_assignment_epoch(self, epoch: int, now_ms: int) -> None:
        """Set the epoch of the targets."""
        value = TargetValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
        self._apply(TargetKey(group_id=self.group_id), value)

    def drop_partition_metadata(self) -> None:
        """Delete the metadata of partitions that Kafka 4.0 wrote."""
        self._apply(PartitionMetadataKey(group_id=self.group_id), None)

    def set_pattern(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """Set the topics of a pattern; None if no member is subscribed to it any more."""
        key = PatternKey(group_id=self.group_id, regular_expression=pattern)
        if resolved is None:
            self._apply(key, None)
            return
        topics = sorted(resolved.topics)
        self._apply(key, PatternValue(topics=topics, version=resolved.version, timestamp=resolved.timestamp_ms))

    def delete_group(self) -> None:
        """Delete the group and its members."""
        member_ids = list(self._contents.members)
        for member_id in member_ids:
            self._apply(MemberCurrentKey(group_id=self.group_id, member_id=member_id), None)
        for member_id in member_ids:
            self._apply(MemberTargetKey(group_id=self.group_id, member_id=member_id), None)
        self._apply(TargetKey(group_id=self.group_id), None)
        for member_id in member_ids:
            self._apply(MemberKey(group_id=self.group_id, member_id=member_id), None)
        for pattern in list(self._contents.patterns):
            self.set_pattern(pattern, None)
        self.drop_partition_metadata()
        self._apply(GroupKey(group_id=self.group_id), None)

    # Members

    def set_member(self, member: ConsumerMember) -> None:
        """Store the fields that a member reports about itself."""
        self._apply(MemberKey(group_id=self.group_id, member_id=member.member_id), build_member_value(member))

    def set_current_assignment(self, member: ConsumerMember) -> None:
        """Store the epoch, the state and the assignment of a member."""
        self._apply(MemberCurrentKey(group_id=self.group_id, member_id=member.member_id), build_current_value(member))

    def set_target(self, member_id: str, target: Assignment) -> None:
        """Store the target of a member."""
        self._apply(MemberTargetKey(group_id=self.group_id, member_id=member_id), build_target_value(target))

    def remove_member(self, member_id: str) -> None:
        """Remove a member."""
        self._removed.append(member_id)
        for key in (MemberCurrentKey, MemberTargetKey, MemberKey):
            self._apply(key(group_id=self.group_id, member_id=member_id), None)

    def replace_member(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """Replace a member by another one, which gets its assignment and its target."""
        target = self._contents.targets.get(old.member_id, {})
        self.remove_member(old.member_id)
        self.set_member(new)
        self.set_target(new.member_id, target)
        self.set_current_assignment(new)
