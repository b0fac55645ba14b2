"""Deleting committed offsets that are too old (KIP-211), and those of deleted topics.

The coordinator keeps an offset for offsets.retention.minutes. The time starts

- with the commit, if the group never had members (it has no protocol type);
- when the group became empty, if it had members (with the commit, if the log has no time for that);
- with the commit, in a stable classic group of consumers and in every group of the consumer protocol. These groups keep the
  offsets of topics that they are subscribed to.

No offset expires while a group rebalances, nor while its members are not consumers (such as Connect's). A commit that named a
retention time of its own is kept for that time. An offset is also kept while another one for the same partition is pending in a
transaction. A group that is empty and has no offsets, pending ones included, is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.committed_offset import NO_TIMESTAMP, CommittedOffset
from kafkacompat.groups.deletion import GroupDeletion
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.timers import Clock, DelayedCall, now_ms
from kafkacompat.wire.primitives import ZERO_UUID

log = logging.getLogger(__name__)

# Offsets that one turn of the reactor checks, and the offsets that a group counts as: some 10 ms if everything is expired.
WORK_A_TURN = 1000
WORK_FOR_A_GROUP = 5


def find_expired_offsets(group: AnyGroup, now_ms: int, retention_ms: int) -> list[tuple[str, int]]:
    """Return the partitions whose offsets are too old."""
    return [
        (topic, partition)
        for topic, partition, committed in group.offsets
        if _is_expired(group, committed, now_ms, retention_ms)
        and not group.is_subscribed(topic)
        and (topic, partition) not in group.offsets.pending
    ]


def _is_expired(group: AnyGroup, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.retention_start_ms(committed.commit_timestamp_ms)
    if since_ms is None:
        return False
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms >= since_ms + retention_ms


class OffsetExpiration:
    """Checks all groups regularly, some of them in each turn of the reactor."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        registry: GroupRegistry,
        deletion: GroupDeletion,
        cooperator: Cooperator,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._deletion = deletion
        self._cooperator = cooperator
        self._next_check: DelayedCall | None = None
        self._is_running = False

    def start(self) -> None:
        """Start. The first check comes after one interval, each further check an interval after the one before has ended."""
        self._is_running = True
        self._check_later()

    def stop(self) -> None:
        """Stop."""
        self._is_running = False
        if self._next_check is not None and self._next_check.active():
            self._next_check.cancel()

    def _check_later(self) -> None:
        if self._is_running:
            interval = self._settings.offsets_retention_check_interval_ms / 1000
            self._next_check = self._clock.callLater(interval, self._check_groups)

    def _check_groups(self) -> None:
        self._for_each_group(self._expire).addCallback(lambda _: self._check_later())

    def delete_offsets_of_topics(self, topics: Mapping[str, bytes]) -> Deferred[None]:
        """Delete the offsets of deleted *topics*, topic ids by name; fires when all groups are checked."""
        return self._for_each_group(lambda group: self._forget_topics(group, topics))

    def _forget_topics(self, group: AnyGroup, topics: Mapping[str, bytes]) -> None:
        waiting = group.shard.writer.wait_for_writes() if group.offsets.commits_in_flight else None
        if waiting is not None:
            waiting.addCallback(lambda _: self._forget_topics(group, topics))
            return
        partitions = {
            (topic, partition): None
            for topic, partition, committed in chain(group.offsets, group.offsets.pending.commits())
            if topic in topics and committed.topic_id in (ZERO_UUID, topics[topic])
        }
        self._delete(group, list(partitions))

    def _for_each_group(self, action: Callable[[AnyGroup], None]) -> Deferred[None]:
        walk = self._cooperator.coiterate(self._walk(action))
        walk.addErrback(lambda failure: log.error("Failed to check the offsets of all groups", exc_info=failure.value))
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
            return  # Tombstones would overtake these commits; the next check finds the group again.
        at_ms = now_ms(self._clock)
        expired = find_expired_offsets(group, at_ms, self._settings.offsets_retention_ms)
        is_unused = group.is_empty and not group.has_pending_members and not group.offsets.pending
        if is_unused and len(expired) == len(group.offsets):
            log.info("Deleting group %s: it is empty and its offsets have expired", group.group_id)
            self._deletion.delete_group(group)
        else:
            self._delete(group, expired)

    def _delete(self, group: AnyGroup, partitions: list[tuple[str, int]]) -> None:
        if partitions:
            log.info("Deleting %d offsets of group %s", len(partitions), group.group_id)
            self._deletion.delete_offsets(group, partitions)
