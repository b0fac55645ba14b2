"""Rebuilding the groups of one partition of the offsets topic from its records, when this broker is elected its leader."""

from __future__ import annotations

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.record_format import decode_value
from kafkacompat.coordination.replay import Replay
from kafkacompat.coordination.shard import Shard
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kafkacompat.groups.classic.state import EMPTY, STABLE
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.records import VALUE_TYPES, ConsumerGroupRecordKey, GroupKey
from kafkacompat.groups.offset_records import OffsetCommitKey, OffsetCommitValue
from kafkacompat.groups.offset_table import OffsetTransactions
from kafkacompat.groups.records import read_key
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import BatchHeader, Record

NO_TIMEOUT = -1
COMMIT_MARKER = 1


class GroupLoader(Replay):
    """Replays one partition. The results are its ``groups`` and the open ``transactions`` with offsets."""

    def __init__(self, shard: Shard, budget: MemoryBudget) -> None:
        super().__init__(shard)
        self.groups: dict[str, AnyGroup] = {}
        self.transactions = OffsetTransactions()
        self._budget = budget

    def _finish(self) -> str:
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                group.subscribed_topics = group.compute_subscribed_topics()
        return f"{len(self.groups)} groups"

    def discard(self) -> None:
        """Release the memory of the groups: they are not needed."""
        for group_id in list(self.groups):
            self._remove(group_id)

    def _replay_record(self, header: BatchHeader, record: Record) -> None:
        if header.is_control:
            self._end_transaction(header.producer_id, record)
            return
        try:
            key = read_key(record.key or b"")
            if isinstance(key, OffsetCommitKey):
                self._replay_offset(key, header, record.value)
            elif isinstance(key, GroupMetadataKey):
                self._replay_group(key, record.value)
            elif key is not None:
                self._replay_consumer(key, record.value)
            else:
                self._skipped["of a kind of group that is not served"] += 1
        except MalformedError:
            self._skipped["malformed"] += 1

    # Offsets

    def _replay_offset(self, key: OffsetCommitKey, header: BatchHeader, data: Buffer | None) -> None:
        group = self.groups.get(key.group)
        if data is None:
            if group is not None:
                group.offsets.remove(key.topic, key.partition)
            return
        committed = _committed_offset(decode_value(OffsetCommitValue, data))
        if group is None:
            group = self._make_group(key.group, committed.commit_timestamp_ms)
        if header.is_transactional:
            self.transactions.add(header.producer_id, group.offsets, [(key.topic, key.partition, committed)])
        else:
            group.offsets.put(key.topic, key.partition, committed)

    def _end_transaction(self, producer_id: int, marker: Record) -> None:
        is_commit = int.from_bytes((marker.key or b"")[2:4], "big") == COMMIT_MARKER
        self.transactions.end_transaction(producer_id, is_commit=is_commit)

    # Groups

    def _replay_group(self, key: GroupMetadataKey, data: Buffer | None) -> None:
        if data is None:
            if isinstance(self.groups.get(key.group), ClassicGroup):
                self._delete(key.group)
            return
        value = decode_value(GroupMetadataValue, data)
        group = self._make_group(key.group, value.current_state_timestamp)
        group.generation_id = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader_id = value.leader
        for member in {member.member_id: member for member in value.members}.values():
            group.add_member(_classic_member(member, value.protocol or ""), value.protocol_type)
        group.state = STABLE if group.members else EMPTY

    def _make_group(self, group_id: str, since_ms: int) -> ClassicGroup:
        group = ClassicGroup(group_id, self._shard, self._budget, since_ms)
        group.is_logged = True
        self._replace(group)
        return group

    def _replay_consumer(self, key: ConsumerGroupRecordKey, data: Buffer | None) -> None:
        group = self.groups.get(key.group_id)
        value = None if data is None else decode_value(VALUE_TYPES[type(key)], data)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = ConsumerGroup(key.group_id, self._shard, self._budget)
            self._replace(group)
        if value is None and isinstance(key, GroupKey):
            self._delete(key.group_id)
        else:
            group.replay(key, value)

    def _replace(self, group: AnyGroup) -> None:
        """Add a group in place of the one with its id, and keep that one's offsets."""
        replaced = self.groups.get(group.group_id)
        self._remove(group.group_id)
        if replaced is not None:
            group.offsets = replaced.offsets
        self.groups[group.group_id] = group

    def _delete(self, group_id: str) -> None:
        """Forget a group, but keep its offsets, which have their own tombstones: a group of the other kind may follow."""
        offsets = self._make_group(group_id, NO_TIMESTAMP).offsets
        if not offsets.by_topic and not offsets.pending:
            self._remove(group_id)

    def _remove(self, group_id: str) -> None:
        group = self.groups.pop(group_id, None)
        if group is not None:
            group.remove_all_members()


def _committed_offset(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp, value.topic_id
    )


def _classic_member(member: MemberMetadata, protocol: str) -> ClassicMember:
    rebalance_timeout_ms = member.rebalance_timeout
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=max(0, member.session_timeout),
        rebalance_timeout_ms=member.session_timeout if rebalance_timeout_ms == NO_TIMEOUT else rebalance_timeout_ms,
        protocols=((protocol, member.subscription),),
        assignment=member.assignment,
    )
