"""JoinGroup: which members may join, and under which id (KIP-62, KIP-345, KIP-394, KIP-814)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import Deferred

from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import OBJECT_BYTES, ClassicMember
from kafkacompat.groups.classic.pending_members import PendingMembers
from kafkacompat.groups.classic.rebalance import Rebalancer
from kafkacompat.groups.classic.responses import build_join_response
from kafkacompat.groups.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    REJOIN,
    STABLE,
    RejoinEffect,
)
from kafkacompat.groups.classic_protocol import (
    JoinAnswer,
    Joiner,
    Protocols,
    build_join_refusal,
    build_sync_refusal,
    protocols_size_bytes,
)
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacompat.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class _JoinRequest:
    """The contents of one JoinGroup."""

    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    reason: str
    joiner: Joiner

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.protocols]


class Joining:
    """Answers JoinGroup."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: GroupRegistry,
        outbox: Outbox,
        rebalance: Rebalancer,
        budget: MemoryBudget,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._outbox = outbox
        self._rebalance = rebalance
        self._budget = budget
        self._random_bytes = random_bytes
        self.pending = PendingMembers(
            clock, outbox, settings.pending_members_max_bytes, rebalance.expire_pending_member
        )

    def join(self, group: ClassicGroup, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """Answer a JoinGroup at once if the member need not wait, else when the joining phase ends."""
        return self._join(group, _parse_join_request(request, joiner))

    def join_new_group(self, request: JoinGroupRequest, joiner: Joiner) -> JoinAnswer:
        """Create a group for its first member."""
        if request.member_id:
            return build_join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        group = ClassicGroup(
            request.group_id, self._registry.shard_for(request.group_id), self._budget, now_ms(self._clock)
        )
        self._registry.by_id[group.group_id] = group
        answer = self.join(group, request, joiner)
        self._rebalance.forget_if_unused(group)
        return answer

    def _join(self, group: ClassicGroup, join: _JoinRequest) -> JoinAnswer:
        if not self._is_within_max_size(group, join.member_id):
            if join.member_id:
                self._forget(group, join.member_id)
            return build_join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(join.protocol_type, join.names):
            return build_join_refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        growth_bytes = _growth_bytes(group, join)
        if growth_bytes > 0 and not self._budget.has_room(growth_bytes):
            # Kafka has no such limit. The client retries, and may join when others have left.
            return build_join_refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, join.member_id)
        return self._join_known(group, join) if join.member_id else self._join_unknown(group, join)

    def _is_within_max_size(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether group.max.size allows this member. During the joining phase only members that have joined count."""
        limit = self._settings.group_max_size
        if group.state is EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is PREPARING_REBALANCE:
            has_joined = member is not None and member.awaiting_join is not None
            return has_joined or group.awaiting_join_count < limit
        return member is not None or len(group.members) < limit

    def _forget(self, group: ClassicGroup, member_id: str) -> None:
        self.pending.discard(group, member_id)
        self._rebalance.remove_member(group, member_id)
        self._rebalance.complete_join_if_all_joined(group)

    # Without a member id

    def _join_unknown(self, group: ClassicGroup, join: _JoinRequest) -> JoinAnswer:
        prefix = join.joiner.client_id if join.group_instance_id is None else join.group_instance_id
        member_id = f"{prefix}-{uuid.UUID(bytes=self._random_bytes(16), version=4)}"
        if join.group_instance_id in group.static_members:
            return self._replace(group, join, member_id)
        if join.group_instance_id is None and join.joiner.requires_member_id:
            self.pending.add(group, member_id, join.session_timeout_ms)
            return build_join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(group, join, member_id)

    def _add(self, group: ClassicGroup, join: _JoinRequest, member_id: str) -> JoinAnswer:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=join.group_instance_id,
            client_id=join.joiner.client_id,
            client_host=join.joiner.client_host,
            session_timeout_ms=join.session_timeout_ms,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            protocols=join.protocols,
            is_new=True,
        )
        group.new_member_added = group.is_initial_rebalance
        group.add_member(member, join.protocol_type)
        answer = self._rebalance.park_join(group, member)
        self._rebalance.restart_session(group, member, self._settings.new_member_join_timeout_ms)
        self._rebalance.start_or_continue_rebalance(group, f"{member_id} joins ({join.reason})")
        return answer

    # With a member id

    def _join_known(self, group: ClassicGroup, join: _JoinRequest) -> JoinAnswer:
        if join.member_id in group.pending:
            if join.group_instance_id is not None:
                # Only dynamic members receive an id before they join.
                return build_join_refusal(ErrorCode.INVALID_REQUEST, join.member_id)
            self.pending.discard(group, join.member_id)
            return self._add(group, join, join.member_id)
        error = group.check_member(join.member_id, join.group_instance_id)
        if error:
            return build_join_refusal(error, join.member_id)
        return self._join_again(group, join, group.members[join.member_id])

    def _join_again(self, group: ClassicGroup, join: _JoinRequest, member: ClassicMember) -> JoinAnswer:
        situation = (group.is_leader(member.member_id), member.protocols != join.protocols)
        if REJOIN[group.state][situation] is RejoinEffect.ANSWER:
            return build_join_response(group, member)
        answer = self._park(group, join, member)
        self._rebalance.start_or_continue_rebalance(group, f"{member.member_id} rejoins ({join.reason})")
        return answer

    def _park(self, group: ClassicGroup, join: _JoinRequest, member: ClassicMember) -> Deferred[JoinGroupResponse]:
        group.update_member(member, join.protocols, join.session_timeout_ms, join.rebalance_timeout_ms)
        return self._rebalance.park_join(group, member)

    # A static member that rejoins without its id

    def _replace(self, group: ClassicGroup, join: _JoinRequest, member_id: str) -> JoinAnswer:
        """Give the member with this instance id its new id, and answer it without a rebalance if possible."""
        assert join.group_instance_id is not None
        member = group.members[group.static_members[join.group_instance_id]]
        previous = _PreviousState(member.member_id, group.leader_id or "", member)
        self._fence(group, member)
        group.change_member_id(member, member_id)
        answer = self._park(group, join, member)
        self._rebalance.restart_session(group, member)
        if group.state is STABLE and group.select_protocol() == group.protocol_name:
            self._store_replacement(group, member, previous, join.joiner.can_skip_assignment)
        elif group.state in (STABLE, COMPLETING_REBALANCE):
            # The leader may already have assigned partitions to the old id, or the group would select another protocol.
            self._rebalance.start_rebalance(
                group, f"instance {join.group_instance_id} rejoins as {member_id} ({join.reason})"
            )
        else:
            self._rebalance.complete_join_if_all_joined(group)
        return answer

    def _fence(self, group: ClassicGroup, member: ClassicMember) -> None:
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._rebalance.answer_join(group, member, build_join_refusal(fenced, member.member_id))
        self._rebalance.answer_sync(group, member, build_sync_refusal(fenced))

    def _store_replacement(
        self, group: ClassicGroup, member: ClassicMember, previous: _PreviousState, can_skip: bool
    ) -> None:
        """Write the new id to the log and answer then; the generation goes on."""
        assignments = {assignee.member_id: assignee.assignment for assignee in group.members.values()}
        member_id = member.member_id
        written = group.shard.writer.write([group.generation_record(assignments)])
        written.addCallback(
            lambda code: self._outbox.run(
                self._on_replacement_stored, group, member, member_id, previous, can_skip, code
            )
        )

    def _on_replacement_stored(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        member_id: str,
        previous: _PreviousState,
        can_skip: bool,
        code: ErrorCode,
    ) -> None:
        if member.member_id != member_id or member.awaiting_join is None or group.state is not STABLE:
            return  # Another event has answered the member in the meantime.
        self._rebalance.restart_session(group, member)
        if code:
            self._rebalance.answer_join(group, member, build_join_refusal(code))
            previous.restore(group, member)
            return
        is_leader = group.is_leader(member_id)
        response = build_join_response(group, member, with_members=is_leader and can_skip)
        response.skip_assignment = is_leader and can_skip
        if not can_skip:
            # A leader of an older version cannot skip the assignment. It must not learn that it leads, or it would assign again.
            response.leader = previous.leader_id
        self._rebalance.answer_join(group, member, response)


class _PreviousState:
    """A static member as it was before it rejoined, to restore it if the log rejects the change."""

    def __init__(self, member_id: str, leader_id: str, member: ClassicMember) -> None:
        self.member_id = member_id
        self.leader_id = leader_id
        self._protocols = member.protocols
        self._session_timeout_ms = member.session_timeout_ms
        self._rebalance_timeout_ms = member.rebalance_timeout_ms

    def restore(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.update_member(member, self._protocols, self._session_timeout_ms, self._rebalance_timeout_ms)
        group.change_member_id(member, self.member_id)


def _growth_bytes(group: ClassicGroup, join: _JoinRequest) -> int:
    """Return how many more bytes of memory the group takes with this member; 0 or less if a known member brings no more."""
    member_id = join.member_id or group.static_members.get(join.group_instance_id or "", "")
    member = group.members.get(member_id)
    known_bytes = protocols_size_bytes(member.protocols) if member is not None else -OBJECT_BYTES
    return protocols_size_bytes(join.protocols) - known_bytes


def _parse_join_request(request: JoinGroupRequest, joiner: Joiner) -> _JoinRequest:
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    return _JoinRequest(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocols=tuple(protocols.items()),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(0, request.rebalance_timeout_ms),
        reason=request.reason or "no reason given",
        joiner=joiner,
    )
