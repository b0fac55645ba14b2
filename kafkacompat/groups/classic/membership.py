"""SyncGroup, Heartbeat and LeaveGroup: the requests of members between two JoinGroups."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.any_group import SenderIdentity
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.pending_members import PendingMembers
from kafkacompat.groups.classic.rebalance import Rebalancer
from kafkacompat.groups.classic.responses import build_sync_response
from kafkacompat.groups.classic.state import COMPLETING_REBALANCE, EMPTY, ON_HEARTBEAT, ON_SYNC
from kafkacompat.groups.classic_protocol import SyncAnswer, build_sync_refusal
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.apis.sync_group import SyncGroupRequest
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)


class Membership:
    """Answers the members of groups that exist."""

    def __init__(self, outbox: Outbox, rebalance: Rebalancer, pending: PendingMembers) -> None:
        self._outbox = outbox
        self._rebalance = rebalance
        self._pending = pending

    # SyncGroup

    def sync(self, group: ClassicGroup, request: SyncGroupRequest) -> SyncAnswer:
        """Answer a member with its assignment, once the assignment that the leader sent is in the log."""
        error = _check_sync(group, request)
        if error:
            return build_sync_refusal(error)
        member = group.members[request.member_id]
        self._rebalance.note_sync(group, member)
        if group.state is not COMPLETING_REBALANCE:
            return build_sync_response(group, member)
        answer = self._rebalance.park_sync(member)
        if group.is_leader(member.member_id):
            self._store_assignments(group, {part.member_id: part.assignment for part in request.assignments})
        return answer

    def _store_assignments(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        unassigned = [member_id for member_id in group.members if not assignments.get(member_id)]
        if unassigned:
            log.info("Group %s: the leader assigned nothing to %s", group.group_id, ", ".join(unassigned))
        group.is_logged = True
        generation_id = group.generation_id
        written = group.shard.writer.write([group.generation_record(assignments)])
        written.addCallback(
            lambda code: self._outbox.run(self._on_assignments_stored, group, generation_id, assignments, code)
        )

    def _on_assignments_stored(
        self, group: ClassicGroup, generation_id: int, assignments: Mapping[str, bytes], code: ErrorCode
    ) -> None:
        if group.state is not COMPLETING_REBALANCE or group.generation_id != generation_id:
            return  # Another rebalance has started in the meantime and has answered all members.
        if code:
            self._rebalance.fail_assignment(group, code)
            self._rebalance.start_or_continue_rebalance(group, f"failed to store the assignment: {code.name}")
        else:
            self._rebalance.apply_assignment(group, assignments)

    # Heartbeat

    def heartbeat(self, group: ClassicGroup, identity: SenderIdentity) -> ErrorCode:
        """Restart a member's session. Returns REBALANCE_IN_PROGRESS if it has to rejoin."""
        error = group.check_generation(identity)
        if error:
            return error
        self._rebalance.restart_session(group, group.members[identity.member_id])
        return ON_HEARTBEAT[group.state]

    # LeaveGroup

    def leave(self, group: ClassicGroup, members: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Remove members, by id or (with an empty id) by instance id; returns one code for each."""
        codes = [self._leave(group, member) for member in members]
        if group.state is EMPTY:
            self._rebalance.forget_if_unused(group)
        elif not all(codes):
            self._rebalance.start_or_continue_rebalance(group, f"{codes.count(ErrorCode.NONE)} of its members left")
        return codes

    def _leave(self, group: ClassicGroup, member: MemberIdentity) -> ErrorCode:
        member_id = member.member_id or group.static_members.get(member.group_instance_id or "", "")
        if member_id in group.pending:
            self._pending.discard(group, member_id)
            group.pending.discard(member_id)
            return ErrorCode.NONE
        error = group.check_member(member_id, member.group_instance_id)
        if not error:
            log.debug("Group %s: %s leaves: %s", group.group_id, member_id, member.reason or "not provided")
            self._rebalance.remove_member(group, member_id)
        return error


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    identity = SenderIdentity(request.member_id, request.group_instance_id, request.generation_id)
    error = group.check_generation(identity)
    if error:
        return error
    if _are_different(request.protocol_type, group.protocol_type) or _are_different(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ON_SYNC[group.state]


def _are_different(requested: str | None, agreed: str | None) -> bool:
    return requested is not None and agreed is not None and requested != agreed
