"""The timers of members: to send a heartbeat, to give up partitions, to rejoin and to send SyncGroup."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.coordination.outbox import Outbox
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.member import MemberState, MemberTimer
from kafkacompat.groups.consumer.settings import GroupConfigs
from kafkacompat.timers import Clock

TIMEOUT_REASONS = {
    MemberTimer.SESSION: "its session expired",
    MemberTimer.REBALANCE: "it did not give up its partitions in time",
    MemberTimer.JOIN: "it did not rejoin in time",
    MemberTimer.SYNC: "it did not send SyncGroup in time",
}


class Timeouts:
    """The timers of all members. ``expired`` is called with the group, the member's id and the reason."""

    def __init__(
        self, clock: Clock, outbox: Outbox, configs: GroupConfigs, expired: Callable[[ConsumerGroup, str, str], None]
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._configs = configs
        self._expired = expired

    def start_missing(self, group: ConsumerGroup) -> None:
        """Start the timers that are not running, for a group that was loaded or restored."""
        session_ms = self._configs.session_timeout_ms(group.group_id)
        for member in group.contents.members.values():
            self.start_unless_running(group, MemberTimer.SESSION, member.member_id, session_ms)
            # For a member of the classic protocol, the next heartbeat starts the time to rejoin.
            if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                self.start_unless_running(group, MemberTimer.REBALANCE, member.member_id, member.rebalance_timeout_ms)

    def start_classic_sessions(self, group: ConsumerGroup) -> None:
        """Start the session timeout of each member of the classic protocol, after the conversion of a group."""
        for member in group.contents.members.values():
            if member.classic is not None:
                self.start(group, MemberTimer.SESSION, member.member_id, member.classic.session_timeout_ms)

    def start(self, group: ConsumerGroup, timer: MemberTimer, member_id: str, delay_ms: int) -> None:
        """Start or restart a timer; a negative delay means 0. Nothing happens if the log has rejected the member."""
        if member_id not in group.contents.members:
            return
        delay_ms = max(0, delay_ms)
        call = group.timers.get((timer, member_id))
        if call is not None and call.active():
            call.reset(delay_ms / 1000)
        else:
            call = self._clock.callLater(delay_ms / 1000, self._outbox.run, self._fire, group, timer, member_id)
            group.timers[timer, member_id] = call

    def start_unless_running(self, group: ConsumerGroup, timer: MemberTimer, member_id: str, delay_ms: int) -> None:
        """Start a timer unless it is running."""
        if (timer, member_id) not in group.timers:
            self.start(group, timer, member_id, delay_ms)

    def cancel(self, group: ConsumerGroup, member_id: str, *timers: MemberTimer) -> None:
        """Cancel some *timers* of a member; without names all of them."""
        for timer in timers or MemberTimer:
            call = group.timers.pop((timer, member_id), None)
            if call is not None and call.active():
                call.cancel()

    def _fire(self, group: ConsumerGroup, timer: MemberTimer, member_id: str) -> None:
        del group.timers[timer, member_id]
        self._expired(group, member_id, TIMEOUT_REASONS[timer])
