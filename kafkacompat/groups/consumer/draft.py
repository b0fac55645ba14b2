"""A change of a consumer group: made on a copy of its contents, record by record, before any of it is in the log."""

from __future__ import annotations

from kafkacompat.groups.consumer.contents import Contents, ResolvedPattern
from kafkacompat.groups.consumer.member import Assignment, ConsumerMember
from kafkacompat.groups.consumer.records import (
    Change,
    GroupKey,
    GroupValue,
    Key,
    MemberCurrentKey,
    MemberKey,
    MemberTargetKey,
    PartitionMetadataKey,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
    current_value,
    member_value,
    target_value,
)
from kafkacompat.wire.schema import Message


class Draft:
    """The contents of a group as they will be, and the ``changes`` that lead there, in the order of Kafka's records."""

    def __init__(self, group_id: str, contents: Contents) -> None:
        self.group_id = group_id
        self.changes: list[Change] = []
        self._removed: list[str] = []
        self._before = contents
        self._contents = contents

    @property
    def contents(self) -> Contents:
        """What the group will be; to be read only."""
        return self._contents

    def _put(self, key: Key, value: Message | None) -> None:
        if self._contents is self._before:
            self._contents = self._before.copy()
        self.changes.append((key, value))
        self._contents.apply(key, value)

    @property
    def gone(self) -> list[str]:
        """The ids of members that there will be no more."""
        return [member_id for member_id in self._removed if member_id not in self._contents.members]

    # The group

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Let the group be in another epoch."""
        self._put(GroupKey(group_id=self.group_id), GroupValue(epoch=epoch, metadata_hash=metadata_hash))

    def set_assignment_epoch(self, epoch: int, now_ms: int) -> None:
        """Say that the targets are those of an epoch."""
        value = TargetValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
        self._put(TargetKey(group_id=self.group_id), value)

    def drop_partition_metadata(self) -> None:
        """Delete what an older Kafka kept of the topics."""
        self._put(PartitionMetadataKey(group_id=self.group_id), None)

    def set_pattern(self, pattern: str, found: ResolvedPattern | None) -> None:
        """Say what a pattern matches; None: nobody is subscribed to it any more."""
        key = PatternKey(group_id=self.group_id, regular_expression=pattern)
        if found is None:
            self._put(key, None)
            return
        topics = sorted(found.topics)
        self._put(key, PatternValue(topics=topics, version=found.version, timestamp=found.timestamp_ms))

    def delete(self) -> None:
        """Delete the group with all that is in it."""
        member_ids = list(self._contents.members)
        for member_id in member_ids:
            self._put(MemberCurrentKey(group_id=self.group_id, member_id=member_id), None)
        for member_id in member_ids:
            self._put(MemberTargetKey(group_id=self.group_id, member_id=member_id), None)
        self._put(TargetKey(group_id=self.group_id), None)
        for member_id in member_ids:
            self._put(MemberKey(group_id=self.group_id, member_id=member_id), None)
        for pattern in list(self._contents.patterns):
            self.set_pattern(pattern, None)
        self.drop_partition_metadata()
        self._put(GroupKey(group_id=self.group_id), None)

    # Members

    def describe(self, member: ConsumerMember) -> None:
        """Put down what a member says of itself."""
        self._put(MemberKey(group_id=self.group_id, member_id=member.member_id), member_value(member))

    def place(self, member: ConsumerMember) -> None:
        """Put down what a member has."""
        self._put(MemberCurrentKey(group_id=self.group_id, member_id=member.member_id), current_value(member))

    def aim(self, member_id: str, target: Assignment) -> None:
        """Put down what a member shall have."""
        self._put(MemberTargetKey(group_id=self.group_id, member_id=member_id), target_value(target))

    def remove(self, member_id: str) -> None:
        """Take a member out."""
        self._removed.append(member_id)
        for key in (MemberCurrentKey, MemberTargetKey, MemberKey):
            self._put(key(group_id=self.group_id, member_id=member_id), None)

    def replace(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """Put a member in the place of another one, with what that has and shall have."""
        target = self._contents.targets.get(old.member_id, {})
        self.remove(old.member_id)
        self.describe(new)
        self.aim(new.member_id, target)
        self.place(new)
