"""When committed offsets grow old (KIP-211), and what becomes of those of deleted topics.

Offsets are kept offsets.retention.minutes from

- the commit, in a group that never had members (it has no protocol type);
- the moment the group became empty, in a group that had (from the commit, where the log does not say when);
- the commit, in a stable classic group of consumers and in any group of the consumer protocol, and there only
  those of topics it is not subscribed to;

and for ever while a group rebalances, and while members of another kind (such as Connect's) are in it. A
commit that named a retention time of its own is kept as long as it asked for. So is one for as long as another for the same
partition waits for a transaction to end. A group that is empty and has no offsets left, waiting ones included, is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.groups.deletion import Deletion
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.wire.primitives import ZERO_UUID

log = logging.getLogger(__name__)

# How much is looked at in one turn of the reactor: some 10 ms where everything is expired.
WORK_A_TURN = 1000
WORK_FOR_A_GROUP = 5


def expired_offsets(group: AnyGroup, now_ms: int, retention_ms: int) -> list[tuple[str, int]]:
    """The partitions whose offsets are due to be deleted."""
    return [
        (topic, partition)
        for topic, partition, committed in group.offsets
        if _is_expired(group, committed, now_ms, retention_ms)
        and not group.is_subscribed(topic)
        and (topic, partition) not in group.offsets.pending
    ]


def _is_expired(group: AnyGroup, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.kept_since(committed.commit_timestamp_ms)
    if since_ms is None:
        return False
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms >= since_ms + retention_ms


class Expiration:
    """Looks through all groups from time to time, a few at a turn of the reactor."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: GroupRegistry,
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

    def _forget_topics(self, group: AnyGroup, topics: Mapping[str, bytes]) -> None:
        waiting = group.shard.writer.settled() if group.offsets.commits_in_flight else None
        if waiting is not None:
            waiting.addCallback(lambda _: self._forget_topics(group, topics))
            return
        doomed = {
            (topic, partition): None
            for topic, partition, committed in chain(group.offsets, group.offsets.pending.commits())
            if topic in topics and committed.topic_id in (ZERO_UUID, topics[topic])
        }
        self._delete(group, list(doomed))

    def _through_groups(self, action: Callable[[AnyGroup], None]) -> Deferred[None]:
        walk = self._cooperator.coiterate(self._walk(action))
        walk.addErrback(lambda failure: log.error("the offsets could not be looked through", exc_info=failure.value))
        return walk.addCallback(lambda _: None)

    def _walk(self, action: Callable[[AnyGroup], None]) -> Iterator[None]:
        work = 0
        for group in list(self._registry.by_id.values()):
            work += WORK_FOR_A_GROUP + len(group.offsets) + len(group.offsets.pending)
            if work >= WORK_A_TURN:
                work = 0
                yield
            if self._registry.is_current(group):
                action(group)

    def _expire(self, group: AnyGroup) -> None:
        if group.offsets.commits_in_flight:
            return  # Their tombstones would overtake them; the next look finds the group again.
        at_ms = now_ms(self._clock)
        expired = expired_offsets(group, at_ms, self._settings.offsets_retention_ms)
        is_unused = group.is_empty and not group.is_expected and not group.offsets.pending
        if is_unused and len(expired) == len(group.offsets):
            log.info("group %s is empty and its offsets are older than they are kept: it is deleted", group.group_id)
            self._deletion.delete(group)
        else:
            self._delete(group, expired)

    def _delete(self, group: AnyGroup, partitions: list[tuple[str, int]]) -> None:
        if partitions:
            log.info("group %s: %d offsets are deleted", group.group_id, len(partitions))
            self._deletion.delete_offsets(group, partitions)
