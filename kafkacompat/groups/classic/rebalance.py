"""Moving a classic group from one generation to the next: the joining phase, the assignment, and the timers of both.

Every change of a group runs inside `Outbox.run`; the timers that are started here do that themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.classic.group import ClassicGroup
from kafkacompat.groups.classic.member import ClassicMember
from kafkacompat.groups.classic.responses import build_join_response, build_sync_response
from kafkacompat.groups.classic.state import COMPLETING_REBALANCE, PREPARING_REBALANCE, STABLE, TRANSITIONS, GroupEvent
from kafkacompat.groups.classic_protocol import build_join_refusal, build_sync_refusal
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.sync_group import SyncGroupResponse
from kafkacompat.wire.errors import ErrorCode

log = logging.getLogger(__name__)

NOBODY_JOINED_MS = 1000
"""Minimum time to wait while no member has joined: the members may have a rebalance timeout of 0."""


class Rebalancer:
    """Moves all classic groups from generation to generation."""

    def __init__(self, clock: Clock, settings: GroupSettings, registry: GroupRegistry, outbox: Outbox) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._outbox = outbox

    # Starting a rebalance

    def start_or_continue_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance because a member joined, left or changed; if one is under way, end its joining phase if all joined."""
        if GroupEvent.CHANGED in TRANSITIONS[group.state]:
            self.start_rebalance(group, reason)
        else:
            self.complete_join_if_all_joined(group)

    def start_rebalance(self, group: ClassicGroup, reason: str) -> None:
        """Start the joining phase. Members learn from their next heartbeat that they have to rejoin."""
        log.debug("Group %s leaves generation %d: %s", group.group_id, group.generation_id, reason)
        group.rebalance_reason = reason
        if group.state is COMPLETING_REBALANCE:
            self.fail_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        _stop_timer(group.sync_timer)
        group.apply_event(GroupEvent.CHANGED, now_ms(self._clock))
        if group.is_initial_rebalance:
            self._start_initial_delay(group)
        elif group.have_all_joined:
            self.complete_join(group)
        else:
            self._end_join_later(group)

    def _start_initial_delay(self, group: ClassicGroup) -> None:
        """Wait for group.initial.rebalance.delay.ms, so that the first members of a group join together."""
        delay_ms = self._settings.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.join_timer = self._call_later(delay_ms, self._end_initial_delay, group, delay_ms, remaining_ms)

    def _end_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Wait again as long as new members join, but not beyond the rebalance timeout; then end the joining phase."""
        if not group.new_member_added or remaining_ms == 0:
            self.complete_join(group)
            return
        group.new_member_added = False
        next_ms = min(self._settings.group_initial_rebalance_delay_ms, remaining_ms)
        left_ms = max(remaining_ms - delay_ms, 0)
        group.join_timer = self._call_later(next_ms, self._end_initial_delay, group, next_ms, left_ms)

    # Ending the joining phase

    def complete_join_if_all_joined(self, group: ClassicGroup) -> None:
        """End the joining phase if all members have joined. An initial rebalance ends by time alone."""
        if group.state is PREPARING_REBALANCE and not group.is_initial_rebalance and group.have_all_joined:
            self.complete_join(group)

    def _end_join_later(self, group: ClassicGroup, at_least_ms: int = 0) -> None:
        _stop_timer(group.join_timer)
        group.join_timer = self._call_later(max(at_least_ms, group.rebalance_timeout_ms), self.complete_join, group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Start the next generation with the members that joined. Static members stay even if they have not."""
        _stop_timer(group.join_timer)
        late = [member for member in group.members.values() if member.awaiting_join is None and not member.is_static]
        for member in late:
            log.info("Group %s: removing %s, which did not join in time", group.group_id, member.member_id)
            self.remove_member(group, member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has joined: their sessions will expire, or one of them rejoins.
            self._end_join_later(group, NOBODY_JOINED_MS)
            return
        group.start_next_generation(now_ms(self._clock))
        if group.members:
            self._start_generation(group)
        else:
            self._store_empty(group)

    def _start_generation(self, group: ClassicGroup) -> None:
        members = "1 member" if len(group.members) == 1 else f"{len(group.members)} members"
        words = "Rebalanced group %s: generation %d, %s, because %s"
        log.info(words, group.group_id, group.generation_id, members, group.rebalance_reason)
        for member in group.members.values():
            self.answer_join(group, member, build_join_response(group, member))
            self.restart_session(group, member)
            member.is_new = False
        group.pending_sync = set(group.members)
        group.sync_timer = self._call_later(group.rebalance_timeout_ms, self._expire_sync, group)

    def _store_empty(self, group: ClassicGroup) -> None:
        log.info("Rebalanced group %s: generation %d is empty", group.group_id, group.generation_id)
        if group.is_logged:
            # A failure does no harm: the log then has an older generation, whose members are gone as well.
            group.shard.writer.write([group.generation_record({})])
        else:
            self.forget_if_unused(group)

    # Assigning

    def note_sync(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Note that a member sent SyncGroup in time."""
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            _stop_timer(group.sync_timer)

    def _expire_sync(self, group: ClassicGroup) -> None:
        """Remove the members that did not send SyncGroup in time, and start a rebalance."""
        late = sorted(group.pending_sync)
        for member_id in late:
            self.remove_member(group, member_id)
        if late:
            self.start_rebalance(group, f"{', '.join(late)} did not send SyncGroup in time")

    def apply_assignment(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Make the group stable and answer its members: the assignment is in the log."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        for member in group.members.values():
            self.answer_sync(group, member, build_sync_response(group, member))
        group.apply_event(GroupEvent.ASSIGNED, now_ms(self._clock))

    def fail_assignment(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Answer all members that wait for an assignment with *code*: this generation has none."""
        for member in group.members.values():
            member.assignment = b""
            self.answer_sync(group, member, build_sync_refusal(code))

    # Members

    def answer_join(self, group: ClassicGroup, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Answer the JoinGroup of a member, if one waits."""
        waiting = member.awaiting_join
        if waiting is not None:
            group.set_awaiting_join(member, None)
            self._outbox.answer(waiting, response)

    def answer_sync(self, group: ClassicGroup, member: ClassicMember, response: SyncGroupResponse) -> None:
        """Answer the SyncGroup of a member, if one waits, and restart its session: it could not send heartbeats."""
        waiting = member.awaiting_sync
        if waiting is not None:
            member.awaiting_sync = None
            self._outbox.answer(waiting, response)
            self.restart_session(group, member)

    def park_join(self, group: ClassicGroup, member: ClassicMember) -> Deferred[JoinGroupResponse]:
        """Let a member wait for the joining phase to end. An earlier JoinGroup of the member gets REBALANCE_IN_PROGRESS."""
        self.answer_join(group, member, build_join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        waiting: Deferred[JoinGroupResponse] = Deferred()
        group.set_awaiting_join(member, waiting)
        return waiting

    def park_sync(self, member: ClassicMember) -> Deferred[SyncGroupResponse]:
        """Let a member wait for the assignment. An earlier SyncGroup of the member gets REBALANCE_IN_PROGRESS."""
        if member.awaiting_sync is not None:
            self._outbox.answer(member.awaiting_sync, build_sync_refusal(ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = Deferred()
        return member.awaiting_sync

    def remove_member(self, group: ClassicGroup, member_id: str, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Remove a member, and answer its waiting requests with *code*; the caller decides how the group goes on."""
        member = group.remove_member(member_id)
        if member is not None:
            self.release_member(member, code)

    def release_member(self, member: ClassicMember, code: ErrorCode) -> None:
        """Answer the waiting requests of a member that was removed with *code*, and end its session."""
        _stop_timer(member.session)
        if member.awaiting_join is not None:
            self._outbox.answer(member.awaiting_join, build_join_refusal(code))
        if member.awaiting_sync is not None:
            self._outbox.answer(member.awaiting_sync, build_sync_refusal(code))
        member.awaiting_join = member.awaiting_sync = None

    def restart_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Restart the session of a member: it expires after *timeout_ms*, by default the member's session timeout."""
        delay = (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        timer = member.session
        if timer is not None and timer.active():
            # `reset` only stores the new time: Twisted moves the call when its old time comes.
            timer.reset(delay)
        else:
            member.session = self._clock.callLater(delay, self._outbox.run, self._expire_session, group, member)

    def _expire_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        if not member.session_may_expire:
            return
        log.info("Group %s: removing %s, whose session expired", group.group_id, member.member_id)
        self.remove_member(group, member.member_id)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            self.start_or_continue_rebalance(group, f"the session of {member.member_id} expired")
        elif group.state is PREPARING_REBALANCE and group.have_all_joined:
            self.complete_join(group)

    def expire_pending_member(self, group: ClassicGroup, member_id: str) -> None:
        """Forget a pending member that did not join in time."""
        group.pending.discard(member_id)
        if group.state is PREPARING_REBALANCE and group.have_all_joined:
            self.complete_join(group)
        else:
            self.forget_if_unused(group)

    # Groups

    def forget_if_unused(self, group: ClassicGroup) -> None:
        """Remove a group without members and records: otherwise requests with invented group ids would fill the memory."""
        if group.is_unused and self._registry.is_current(group):
            self.remove_group(group, ErrorCode.UNKNOWN_MEMBER_ID)

    def remove_group(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Remove a group from the registry, and answer its waiting requests with *code*."""
        del self._registry.by_id[group.group_id]
        for timer in (group.join_timer, group.sync_timer):
            _stop_timer(timer)
        for member in group.remove_all_members():
            self.release_member(member, code)
        group.apply_event(GroupEvent.REMOVED, now_ms(self._clock))

    def _call_later(self, delay_ms: int, action: Callable[..., None], *arguments: object) -> DelayedCall:
        return self._clock.callLater(delay_ms / 1000, self._outbox.run, action, *arguments)


def _stop_timer(timer: DelayedCall | None) -> None:
    if timer is not None and timer.active():
        timer.cancel()
