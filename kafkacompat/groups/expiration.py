"""When committed offsets grow old (KIP-211), and what becomes of those of deleted topics.

Offsets are kept offsets.retention.minutes from

- the commit, in a group that never had members (it has no protocol type);
- the moment the group became empty, in a group that had (from the commit, where the log does not say when);
- the commit, in a stable group of consumers, and there only those of topics it is not subscribed to;

and for ever while a group rebalances, and while members of another kind (such as Connect's) are in it. A
commit that named a retention time of its own is kept as long as it asked for. A group that is empty and has
no offsets left is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafkacompat.groups.deletion import Deletion
from kafkacompat.groups.group import CONSUMER_PROTOCOL_TYPE, Group
from kafkacompat.groups.offsets import NO_TIMESTAMP, CommittedOffset
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.groups.shard import Registry
from kafkacompat.groups.state import EMPTY, STABLE
from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.wire.primitives import ZERO_UUID

log = logging.getLogger(__name__)

# How much is looked at in one turn of the reactor: some 10 ms where everything is expired.
WORK_A_TURN = 1000
WORK_FOR_A_GROUP = 5

_Base: TypeAlias = "Callable[[CommittedOffset], int]"


def retention_base(group: Group) -> _Base | None:
    """How to tell from when on a group's offsets are kept; None while none of them may expire."""
    if group.protocol_type is None:
        return _commit_time
    if group.state is EMPTY:
        since_ms = group.state_timestamp_ms
        return _commit_time if since_ms == NO_TIMESTAMP else lambda _: since_ms
    knows_topics = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.subscribed_topics is not None
    return _commit_time if group.state is STABLE and knows_topics else None


def expired_offsets(group: Group, now_ms: int, retention_ms: int) -> list[tuple[str, int]]:
    """The partitions whose offsets are due to be deleted."""
    base = retention_base(group)
    if base is None:
        return []
    return [
        (topic, partition)
        for topic, partition, committed in group.offsets
        if now_ms >= _expiry_ms(committed, base, retention_ms) and not group.is_subscribed(topic)
    ]


def _expiry_ms(committed: CommittedOffset, base: _Base, retention_ms: int) -> int:
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return committed.expire_timestamp_ms
    return base(committed) + retention_ms


def _commit_time(committed: CommittedOffset) -> int:
    return committed.commit_timestamp_ms


class Expiration:
    """Looks through all groups from time to time, a few at a turn of the reactor."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: Registry,
        deletion: Deletion,
        cooperator: Cooperator,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._deletion = deletion
        self._cooperator = cooperator
        self._next_look: DelayedCall | None = None
        self._is_running = False

    def start(self) -> None:
        """Begin; the first look is after one interval, and each next one an interval after the last has ended."""
        self._is_running = True
        self._look_later()

    def stop(self) -> None:
        """End."""
        self._is_running = False
        if self._next_look is not None and self._next_look.active():
            self._next_look.cancel()

    def _look_later(self) -> None:
        if self._is_running:
            interval = self._settings.offsets_retention_check_interval_ms / 1000
            self._next_look = self._clock.callLater(interval, self._look)

    def _look(self) -> None:
        self._through_groups(self._expire).addCallback(lambda _: self._look_later())

    def topics_deleted(self, topics: Mapping[str, bytes]) -> Deferred[None]:
        """Delete every group's offsets of topics (name -> topic id) that are gone; fires when all are looked at."""
        return self._through_groups(lambda group: self._forget_topics(group, topics))

    def _forget_topics(self, group: Group, topics: Mapping[str, bytes]) -> None:
        waiting = group.shard.writer.settled() if group.commits_in_flight else None
        if waiting is not None:
            waiting.addCallback(lambda _: self._forget_topics(group, topics))
            return
        doomed = [
            (topic, partition)
            for topic, partition, committed in group.offsets
            if topic in topics and committed.topic_id in (ZERO_UUID, topics[topic])
        ]
        self._delete(group, doomed)

    def _through_groups(self, action: Callable[[Group], None]) -> Deferred[None]:
        walk = self._cooperator.coiterate(self._walk(action))
        walk.addErrback(lambda failure: log.error("the offsets could not be looked through", exc_info=failure.value))
        return walk.addCallback(lambda _: None)

    def _walk(self, action: Callable[[Group], None]) -> Iterator[None]:
        work = 0
        for group in list(self._registry.groups.values()):
            work += WORK_FOR_A_GROUP + len(group.offsets)
            if work >= WORK_A_TURN:
                work = 0
                yield
            if self._registry.is_current(group):
                action(group)

    def _expire(self, group: Group) -> None:
        if group.commits_in_flight:
            return  # Their tombstones would overtake them; the next look finds the group again.
        at_ms = now_ms(self._clock)
        expired = expired_offsets(group, at_ms, self._settings.offsets_retention_ms)
        if group.state is EMPTY and not group.pending and len(expired) == len(group.offsets):
            log.info("group %s is empty and its offsets are older than they are kept: it is deleted", group.group_id)
            self._deletion.delete(group)
        else:
            self._delete(group, expired)

    def _delete(self, group: Group, partitions: list[tuple[str, int]]) -> None:
        if partitions:
            log.info("group %s: %d offsets are deleted", group.group_id, len(partitions))
            self._deletion.delete_offsets(group, partitions)
