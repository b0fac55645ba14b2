"""Writing the changes of consumer groups to the log, and undoing them if the log rejects them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.shard import Shard
from kafkacompat.groups.consumer.contents import GroupContents
from kafkacompat.groups.consumer.draft import GroupDraft
from kafkacompat.groups.consumer.group import ConsumerGroup
from kafkacompat.groups.consumer.records import as_record
from kafkacompat.groups.consumer.timeouts import Timeouts
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class GroupWriter:
    """Writes drafts.

    A change applies at once, so that the next change builds upon it. The response waits until the log has it. If the log rejects
    a change, the group becomes what it was before. If another change already builds upon it, or if it converted the group,
    ``reload`` loads the partition of the offsets topic again.
    """

    def __init__(
        self, registry: GroupRegistry, budget: MemoryBudget, timeouts: Timeouts, reload: Callable[[int], None]
    ) -> None:
        self._registry = registry
        self._budget = budget
        self._timeouts = timeouts
        self._reload = reload

    def check_memory(self, group: ConsumerGroup, draft: GroupDraft) -> None:
        """Raise KafkaError COORDINATOR_NOT_AVAILABLE if the memory budget has no room for a change; Kafka has no such limit."""
        growth = draft.contents.size_bytes - group.counted_bytes
        if growth > 0 and not self._budget.has_room(growth):
            message = f"the members of all groups take more than {self._budget.limit_bytes} bytes"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    def apply_and_write(
        self, group: ConsumerGroup, draft: GroupDraft, before: list[Record]
    ) -> Deferred[ErrorCode] | None:
        """Apply *draft* to the group. Fires when the records of *before* and the draft's are in the log, in this order.

        Returns None if there is nothing to wait for. A new group is added to the registry.
        """
        was_known = self._registry.by_id.get(group.group_id) is group
        contents, group.contents = group.contents, draft.contents
        for member_id in draft.removed_members:
            self._timeouts.cancel(group, member_id)
        records = before + [as_record(change) for change in draft.changes]
        if not records:
            return self.wait_for_writes(group)
        self._registry.by_id[group.group_id] = group
        group.writes_in_flight += 1
        undo = partial(self._undo, group, contents) if was_known else partial(self._forget, group)
        return group.shard.writer.write(records, partial(self._on_outcome, group, None if before else undo))

    def write_conversion(self, shard: Shard, records: list[Record]) -> Deferred[ErrorCode]:
        """Write the records that convert a group."""

        def on_outcome(outcome: ErrorCode) -> None:
            if outcome and shard.is_active:
                log.error("Failed to write the conversion of a group: %s", outcome.name)
                self._reload(shard.partition)

        return shard.writer.write(records, on_outcome)

    def wait_for_writes(self, group: ConsumerGroup) -> Deferred[ErrorCode] | None:
        """Wait for the writes so far, so that no response tells what the log does not have. None if there is nothing to wait for."""
        waiting = group.shard.writer.wait_for_writes()
        refusals = group.refusals

        def as_code(is_settled: bool) -> ErrorCode:
            is_logged = is_settled and group.refusals == refusals
            return ErrorCode.NONE if is_logged else ErrorCode.COORDINATOR_NOT_AVAILABLE

        return None if waiting is None else waiting.addCallback(as_code)

    def _on_outcome(self, group: ConsumerGroup, undo: Callable[[], None] | None, outcome: ErrorCode) -> None:
        group.writes_in_flight -= 1
        group.refusals += bool(outcome)
        if not outcome or not group.shard.is_active:
            return
        log.error("Group %s: failed to write a change: %s", group.group_id, outcome.name)
        if undo is not None and not group.writes_in_flight and self._registry.is_current(group):
            undo()
        else:
            self._reload(group.shard.partition)

    def _undo(self, group: ConsumerGroup, contents: GroupContents) -> None:
        group.contents = contents
        group.checked_image = None
        group.resolved_topics_version = -1
        self._timeouts.start_missing(group)

    def _forget(self, group: ConsumerGroup) -> None:
        group.remove_all_members()
        del self._registry.by_id[group.group_id]


def respond_when_written(
    waiting: Deferred[ErrorCode] | None, response: Answer, refused: Callable[[ErrorCode], Answer]
) -> Answer | Deferred[Answer]:
    """Return *response* once *waiting* fires, or what *refused* returns for the code of a rejected write."""
    if waiting is None:
        return response
    return waiting.addCallback(lambda code: refused(code) if code else response)
