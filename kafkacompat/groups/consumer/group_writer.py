"""How a change of a consumer group gets into the log, and what happens if it does not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.shard import Shard
from kafkacompat.groups.consumer.contents import Contents
from kafkacompat.groups.consumer.draft import Draft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.records import write
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Storing:
    """Writes drafts.

    A change counts at once, so that what comes next builds upon it, and is answered when it is in the log. If the
    log refuses it, the group is what it was; where something was built upon it, or it made another kind of group
    of it, ``reload`` is asked to read the partition of the offsets topic again.
    """

    def __init__(
        self, registry: GroupRegistry, budget: MemoryBudget, timeouts: Timeouts, reload: Callable[[int], None]
    ) -> None:
        self._registry = registry
        self._budget = budget
        self._timeouts = timeouts
        self._reload = reload

    def check_room(self, group: ConsumerGroup, draft: Draft) -> None:
        """Refuse a change that there is no memory for; Kafka has no such bound. Raises KafkaError."""
        growth = draft.contents.size_bytes - group.counted_bytes
        if growth > 0 and not self._budget.has_room(growth):
            message = f"the members of all groups take more than {self._budget.limit_bytes} bytes"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    def store(self, group: ConsumerGroup, draft: Draft, before: list[Record]) -> Deferred[ErrorCode] | None:
        """Make *draft* what the group is; fires when it is in the log, behind the records of *before*.

        None when there is nothing to wait for. A group that was not there before is from now on.
        """
        was_known = self._registry.by_id.get(group.group_id) is group
        contents, group.contents = group.contents, draft.contents
        for member_id in draft.gone:
            self._timeouts.cancel(group, member_id)
        records = before + [write(change) for change in draft.changes]
        if not records:
            return self.settled(group)
        self._registry.by_id[group.group_id] = group
        group.writes_in_flight += 1
        undo = partial(self._take_back, group, contents) if was_known else partial(self._forget, group)
        return group.shard.writer.write(records, partial(self._decided, group, None if before else undo))

    def write(self, shard: Shard, records: list[Record]) -> Deferred[ErrorCode]:
        """Write what made another kind of group of one."""

        def decided(outcome: ErrorCode) -> None:
            if outcome and shard.is_active:
                log.error("a group that changed its protocol is not in the log: %s", outcome.name)
                self._reload(shard.partition)

        return shard.writer.write(records, decided)

    def settled(self, group: ConsumerGroup) -> Deferred[ErrorCode] | None:
        """Wait for what was written so far: nobody is told what is not in the log, or may not be."""
        waiting = group.shard.writer.settled()
        refusals = group.refusals

        def decided(is_settled: bool) -> ErrorCode:
            is_logged = is_settled and group.refusals == refusals
            return ErrorCode.NONE if is_logged else ErrorCode.COORDINATOR_NOT_AVAILABLE

        return None if waiting is None else waiting.addCallback(decided)

    def _decided(self, group: ConsumerGroup, undo: Callable[[], None] | None, outcome: ErrorCode) -> None:
        group.writes_in_flight -= 1
        group.refusals += bool(outcome)
        if not outcome or not group.shard.is_active:
            return
        log.error("group %s: a change is not in the log: %s", group.group_id, outcome.name)
        if undo is not None and not group.writes_in_flight and self._registry.is_current(group):
            undo()
        else:
            self._reload(group.shard.partition)

    def _take_back(self, group: ConsumerGroup, contents: Contents) -> None:
        group.contents = contents
        group.checked_image = None
        group.resolved_topics_version = -1
        self._timeouts.watch(group)

    def _forget(self, group: ConsumerGroup) -> None:
        group.clear()
        del self._registry.by_id[group.group_id]


def answered(
    waiting: Deferred[ErrorCode] | None, response: Answer, refused: Callable[[ErrorCode], Answer]
) -> Answer | Deferred[Answer]:
    """The response once what it tells is in the log, or what *refused* makes of the log's refusal."""
    if waiting is None:
        return response
    return waiting.addCallback(lambda code: refused(code) if code else response)
