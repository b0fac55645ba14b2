"""One classic group: its members, its generation, its committed offsets, and the requests that it accepts.

A group has neither a clock nor a log; `rebalance` moves it from generation to generation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.groups.any_group import AnyGroup, SenderIdentity
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.records import GroupMetadataValue, MemberMetadata, group_record, group_tombstone
from kafkacompat.groups.classic.state import DEAD, EMPTY, ON_COMMIT, PREPARING_REBALANCE, STABLE, GroupEvent, next_state
from kafkacompat.groups.classic_protocol import CONSUMER_PROTOCOL_TYPE, Protocols
from kafkacompat.groups.committed_offset import NO_TIMESTAMP
from kafkacompat.timers import DelayedCall
from kafkacompat.wire.consumer_protocol import read_topics
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MalformedError

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.coordination.coordinator_log import Record
    from kafkacompat.coordination.memory_budget import MemoryBudget
    from kafkacompat.coordination.shard import Shard
    from kafkacompat.wire.apis.join_group import JoinGroupResponse


class ClassicGroup(AnyGroup):
    """A classic group, in state Empty at first.

    ``pending`` has the ids that were given to members that have not joined with them yet (KIP-394), ``pending_sync`` the ids of
    members that have not sent SyncGroup in this generation. ``subscribed_topics`` is None if they are unknown.
    """

    TYPE = "classic"

    def __init__(self, group_id: str, shard: Shard, budget: MemoryBudget, now_ms: int) -> None:
        super().__init__(group_id, shard)
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending: set[str] = set()
        self.pending_sync: set[str] = set()
        self.new_member_added = False
        self.rebalance_reason = ""
        self.subscribed_topics: frozenset[str] | None = None
        self.join_timer: DelayedCall | None = None
        self.sync_timer: DelayedCall | None = None
        self._budget = budget
        self._supported: Counter[str] = Counter()
        self._awaiting_join = 0

    # State

    @property
    def state_name(self) -> str:
        """See AnyGroup."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """See AnyGroup."""
        return self.state is EMPTY

    @property
    def member_count(self) -> int:
        """See AnyGroup."""
        return len(self.members)

    @property
    def has_pending_members(self) -> bool:
        """See AnyGroup."""
        return bool(self.pending)

    @property
    def listed_protocol_type(self) -> str:
        """See AnyGroup."""
        return self.protocol_type or ""

    @property
    def is_of_consumers(self) -> bool:
        """See AnyGroup."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def apply_event(self, event: GroupEvent, now_ms: int) -> None:
        """Change the state as `state.TRANSITIONS` says."""
        self.previous_state, self.state = self.state, next_state(self.state, event)
        self.state_timestamp_ms = now_ms

    def restore_deleted(self) -> None:
        """See AnyGroup."""
        self.state, self.previous_state = EMPTY, DEAD

    @property
    def is_initial_rebalance(self) -> bool:
        """Whether this is the first rebalance of a group that was empty; it ends by time alone."""
        return self.state is PREPARING_REBALANCE and self.previous_state is EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether the group can be dropped: it is empty, has no pending member, and has no record in the log."""
        return self.state is EMPTY and not (self.is_logged or self.pending)

    # Members

    def add_member(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member. The first member becomes the leader and decides the protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member, +1)
        self._awaiting_join += member.awaiting_join is not None
        self.pending.discard(member.member_id)

    def remove_member(self, member_id: str) -> ClassicMember | None:
        """Remove a member or a pending member. If it was the leader, the oldest member becomes the leader."""
        self.pending.discard(member_id)
        self.pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member, -1)
        self._awaiting_join -= member.awaiting_join is not None
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def change_member_id(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member that rejoined its new id (KIP-345)."""
        assert member.group_instance_id is not None, "only static members are renamed"
        was_leader = self.leader_id == member.member_id
        del self.members[member.member_id]
        self._budget.used_bytes += len(member_id) - len(member.member_id)
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[member.group_instance_id] = member_id
        if was_leader:
            self.leader_id = member_id

    def update_member(
        self, member: ClassicMember, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        """Store the protocols and timeouts of a member that rejoins."""
        self._count(member, -1)
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms
        self._count(member, +1)

    def set_awaiting_join(self, member: ClassicMember, answer: Deferred[JoinGroupResponse] | None) -> None:
        """Let *member* wait for the joining phase to end, with its response; None if it no longer waits."""
        self._awaiting_join += (answer is not None) - (member.awaiting_join is not None)
        member.awaiting_join = answer

    def remove_all_members(self) -> list[ClassicMember]:
        """Remove all members, and return them."""
        self.pending.clear()
        return [member for member_id in list(self.members) if (member := self.remove_member(member_id))]

    def _count(self, member: ClassicMember, sign: int) -> None:
        self._budget.used_bytes += sign * member.size_bytes
        for name in {name for name, _ in member.protocols}:
            self._supported[name] += sign
            if not self._supported[name]:
                del self._supported[name]

    @property
    def awaiting_join_count(self) -> int:
        """The number of members that wait for the joining phase to end."""
        return self._awaiting_join

    @property
    def have_all_joined(self) -> bool:
        """Whether every member waits for the next generation and no member is pending."""
        return self._awaiting_join == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members: how long they may take to join."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        """Return whether this member is the leader, which computes the assignment."""
        return self.leader_id == member_id

    def elect_joined_leader(self) -> bool:
        """Elect a leader that has joined, if the present one has not. Returns False if no member has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is None:
            return False
        if leader.awaiting_join is None:
            joined = (member.member_id for member in self.members.values() if member.awaiting_join is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader_id = elected
        return True

    # What is accepted

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Return NONE, UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process took over the instance id."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is not None and current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_generation(self, identity: SenderIdentity) -> ErrorCode:
        """As `check_member`; returns ILLEGAL_GENERATION for a member that names another generation."""
        error = self.check_member(identity.member_id, identity.group_instance_id)
        if not error and identity.generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def check_commit(self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]] = ()) -> ErrorCode:
        """See AnyGroup. The partitions do not matter. A commit without a generation needs an empty group."""
        if identity.generation_id < 0 and self.state is EMPTY:
            return ErrorCode.NONE
        error = ErrorCode.UNKNOWN_MEMBER_ID if identity.is_nobody else self.check_generation(identity)
        return error or ON_COMMIT[self.state]

    def check_commit_in_transaction(
        self, identity: SenderIdentity, partitions: Iterable[tuple[bytes, int]] = ()
    ) -> ErrorCode:
        """See AnyGroup. Neither the partitions nor the state matter."""
        if identity.is_nobody or (identity.generation_id < 0 and self.state is EMPTY):
            return ErrorCode.NONE
        return self.check_generation(identity)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """See AnyGroup. Every client may."""
        return ErrorCode.NONE

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols may join: all members have to support one of them."""
        if self.state is EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        return protocol_type == self.protocol_type and any(self._supported[name] == len(self.members) for name in names)

    # What is agreed

    def select_protocol(self) -> str:
        """Return the protocol that most members prefer among those that all support. In a tie the earlier vote wins."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(member.preferred_protocol(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def start_next_generation(self, now_ms: int) -> None:
        """End the joining phase, and start the next generation with the members that the group has now."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.apply_event(GroupEvent.JOINED if self.members else GroupEvent.DESERTED, now_ms)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics of a group of consumers; None for other groups and if a subscription is unreadable."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics.update(read_topics(member.metadata_for(self.protocol_name)))
        except MalformedError:
            return None
        return frozenset(topics)

    def is_subscribed(self, topic: str) -> bool:
        """See AnyGroup."""
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """See AnyGroup; `expiration` lists the rules."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is EMPTY:
            return commit_timestamp_ms if self.state_timestamp_ms == NO_TIMESTAMP else self.state_timestamp_ms
        knows_topics = self.is_of_consumers and self.subscribed_topics is not None
        return commit_timestamp_ms if self.state is STABLE and knows_topics else None

    def generation_record(self, assignments: Mapping[str, bytes], generation_id: int | None = None) -> Record:
        """Return the record of the group's generation, or of another one; a member without an assignment has an empty one."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id if generation_id is None else generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata_for(self.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )
        return group_record(self.group_id, value)

    def tombstones(self) -> list[Record]:
        """See AnyGroup."""
        return [group_tombstone(self.group_id)]

    def __repr__(self) -> str:
        return f"<group {self.group_id!r}: {self.state.value}, generation {self.generation_id}>"
