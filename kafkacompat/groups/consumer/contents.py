"""The state of one consumer group that the log holds.

Only records change it, by `GroupContents.apply`: those that are loaded and those that are written. So the state in memory is the state
that the next coordinator will load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kafkacompat.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    NAME_BYTES,
    PARTITION_BYTES,
    Assignment,
    ClassicMetadata,
    ConsumerMember,
    Holding,
    MemberState,
    count_partitions,
)
from kafkacompat.groups.consumer.records import (
    ClassicMemberMetadata,
    ConsumerGroupRecordKey,
    GroupKey,
    GroupValue,
    HeldPartitions,
    MemberCurrentKey,
    MemberCurrentValue,
    MemberKey,
    MemberTargetKey,
    MemberTargetValue,
    MemberValue,
    PartitionMetadataKey,
    PatternKey,
    PatternValue,
    TargetKey,
    TargetValue,
)
from kafkacompat.wire.schema import Message

GROUP_BYTES = 2000
"""About how much memory a group takes, without members."""

FIRST_EPOCH = 1
"""The epoch of a new group; its first member increments it."""


class ResolvedPattern(NamedTuple):
    """The topics that a pattern matched, the version of the metadata that it was matched against, and the time."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(slots=True)
class GroupContents:
    """A group's members, their targets, and the epochs of both.

    ``epoch`` grows with each change of members, subscriptions and topics. ``assignment_epoch`` becomes the same when the
    ``targets`` are computed again. ``metadata_hash`` identifies the topics at ``epoch``. ``statics`` has member ids by instance
    id, ``owners`` has member ids by partition (topic id, number). ``pattern_members`` counts the members of each pattern,
    ``subscriptions`` counts those that name the same topics; these members share one set of names. ``size_bytes`` is about how
    much memory all this takes.
    """

    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Assignment] = field(default_factory=dict)
    patterns: dict[str, ResolvedPattern] = field(default_factory=dict)
    pattern_members: Counter[str] = field(default_factory=Counter)
    subscriptions: dict[frozenset[str], tuple[frozenset[str], int]] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    owners: dict[tuple[bytes, int], str] = field(default_factory=dict)
    has_partition_metadata: bool = False
    size_bytes: int = GROUP_BYTES

    def copy(self) -> GroupContents:
        """Return contents that can be changed independently; members and assignments are immutable, and shared."""
        return replace(
            self,
            members=dict(self.members),
            targets=dict(self.targets),
            patterns=dict(self.patterns),
            pattern_members=Counter(self.pattern_members),
            subscriptions=dict(self.subscriptions),
            statics=dict(self.statics),
            owners=dict(self.owners),
        )

    def apply(self, key: ConsumerGroupRecordKey, value: Message | None) -> None:
        """Apply a record. A tombstone for a missing item has no effect."""
        _APPLIERS[type(key)](self, key, value)

    def find_static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member of an instance id, None if there is none."""
        return self.members.get(self.statics.get(instance_id, "")) if instance_id is not None else None

    def find_owner(self, topic_id: bytes, partition: int) -> str | None:
        """Return the member that has a partition, or has not confirmed yet that it gave it up; None if it is free."""
        return self.owners.get((topic_id, partition))

    # By kind of record

    def _apply_group(self, key: GroupKey, value: GroupValue | None) -> None:
        self.epoch = value.epoch if value else FIRST_EPOCH
        self.metadata_hash = value.metadata_hash if value else 0

    def _apply_partition_metadata(self, key: PartitionMetadataKey, value: Message | None) -> None:
        self.has_partition_metadata = value is not None

    def _apply_member(self, key: MemberKey, value: MemberValue | None) -> None:
        before = self.members.get(key.member_id)
        if value is None:
            if before is not None:
                self._put(replace(before, assigned={}, pending_revocation={}))
                self._forget(before)
            return
        topics = frozenset(value.subscribed_topic_names)
        topics, _ = self.subscriptions.get(topics, (topics, 0))
        self._put(_with_member_value(before or ConsumerMember(key.member_id), value, topics))

    def _apply_target(self, key: TargetKey, value: TargetValue | None) -> None:
        self.assignment_epoch = value.assignment_epoch if value else LEAVING_EPOCH
        self.assignment_timestamp_ms = value.assignment_timestamp if value else 0

    def _apply_member_target(self, key: MemberTargetKey, value: MemberTargetValue | None) -> None:
        self.size_bytes -= PARTITION_BYTES * count_partitions(self.targets.pop(key.member_id, {}))
        if value is not None:
            parts = value.topic_partitions
            target = self.targets[key.member_id] = {part.topic_id: frozenset(part.partitions) for part in parts}
            self.size_bytes += PARTITION_BYTES * count_partitions(target)

    def _apply_member_current(self, key: MemberCurrentKey, value: MemberCurrentValue | None) -> None:
        before = self.members.get(key.member_id)
        if value is not None:
            self._put(_with_current_value(before or ConsumerMember(key.member_id), value))
        elif before is not None:
            left = replace(before, member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)
            self._put(replace(left, assigned={}, pending_revocation={}))

    def _apply_pattern(self, key: PatternKey, value: PatternValue | None) -> None:
        before = self.patterns.pop(key.regular_expression, None)
        self.size_bytes -= NAME_BYTES * len(before.topics) if before else 0
        if value is not None:
            resolved = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
            self.patterns[key.regular_expression] = resolved
            self.size_bytes += NAME_BYTES * len(resolved.topics)

    # Members

    def _put(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self.size_bytes += member.size_bytes - (before.size_bytes if before else 0)
        if before is None or before.pattern != member.pattern:
            self._count_pattern(before, -1)
            self._count_pattern(member, +1)
        if before is None or before.topics is not member.topics:
            self._count_subscription(before, -1)
            self._count_subscription(member, +1)
        if before is not None and before.instance_id != member.instance_id:
            self._forget_instance(before)
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id
        if before is None or (before.assigned, before.pending_revocation) != (
            member.assigned,
            member.pending_revocation,
        ):
            self._update_owners(before, member)

    def _update_owners(self, before: ConsumerMember | None, member: ConsumerMember) -> None:
        """Update the owners, but keep partitions that another member got in the meantime."""
        for partition in _list_partitions(before):
            if self.owners.get(partition) == member.member_id:
                del self.owners[partition]
        for partition in _list_partitions(member):
            self.owners[partition] = member.member_id

    def _count_pattern(self, member: ConsumerMember | None, difference: int) -> None:
        if member is not None and member.pattern:
            self.pattern_members[member.pattern] += difference
            if not self.pattern_members[member.pattern]:
                del self.pattern_members[member.pattern]

    def _count_subscription(self, member: ConsumerMember | None, difference: int) -> None:
        if member is not None:
            topics, count = self.subscriptions.pop(member.topics, (member.topics, 0))
            if count + difference:
                self.subscriptions[topics] = topics, count + difference

    def _forget(self, member: ConsumerMember) -> None:
        self._count_pattern(member, -1)
        self._count_subscription(member, -1)
        self.size_bytes -= self.members.pop(member.member_id).size_bytes
        self._forget_instance(member)

    def _forget_instance(self, member: ConsumerMember) -> None:
        if member.instance_id is not None and self.statics.get(member.instance_id) == member.member_id:
            del self.statics[member.instance_id]


_APPLIERS: dict[type[ConsumerGroupRecordKey], Callable[[GroupContents, Any, Any], None]] = {
    GroupKey: GroupContents._apply_group,
    PartitionMetadataKey: GroupContents._apply_partition_metadata,
    MemberKey: GroupContents._apply_member,
    TargetKey: GroupContents._apply_target,
    MemberTargetKey: GroupContents._apply_member_target,
    MemberCurrentKey: GroupContents._apply_member_current,
    PatternKey: GroupContents._apply_pattern,
}


def _list_partitions(member: ConsumerMember | None) -> list[tuple[bytes, int]]:
    if member is None:
        return []
    return [
        (topic_id, partition)
        for holding in (member.assigned, member.pending_revocation)
        for topic_id, epochs in holding.items()
        for partition in epochs
    ]


def _with_member_value(member: ConsumerMember, value: MemberValue, topics: frozenset[str]) -> ConsumerMember:
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=topics,
        pattern=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=_classic_metadata(value.classic_member_metadata),
    )


def _classic_metadata(value: ClassicMemberMetadata | None) -> ClassicMetadata | None:
    if value is None:
        return None
    return ClassicMetadata(
        value.session_timeout_ms, tuple((protocol.name, protocol.metadata) for protocol in value.supported_protocols)
    )


def _with_current_value(member: ConsumerMember, value: MemberCurrentValue) -> ConsumerMember:
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState.from_number(value.state),
        assigned=_read_holding(value.assigned_partitions, value.member_epoch),
        pending_revocation=_read_holding(value.partitions_pending_revocation, value.member_epoch),
    )


def _read_holding(parts: list[HeldPartitions], member_epoch: int) -> Holding:
    """Return partitions with the epochs they were assigned in; *member_epoch* where the log has none."""
    default = max(member_epoch, JOINING_EPOCH)
    holding: dict[bytes, dict[int, int]] = {}
    for part in parts:
        epochs = part.assignment_epochs
        if epochs is None or len(epochs) != len(part.partitions):
            epochs = [default] * len(part.partitions)
        holding[part.topic_id] = dict(zip(part.partitions, epochs, strict=True))
    return holding
