"""Deleting offsets and groups: tombstones first, in batches that the log takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from twisted.internet.defer import Deferred, DeferredList, succeed

from kafkacompat.coordination.coordinator_log import Record
from kafkacompat.groups.any_group import AnyGroup
from kafkacompat.groups.offset_records import offset_tombstone
from kafkacompat.groups.registry import GroupRegistry
from kafkacompat.groups.settings import GroupSettings
from kafkacompat.wire.errors import ErrorCode

BATCH_BYTES = 512 << 10
KEY_BYTES = 300
"""So much takes a batch of tombstones at most, and each, besides the group's id, so much."""


class Deletion:
    """Writes tombstones and forgets what they delete; *remove* takes a group out of the registry."""

    def __init__(self, settings: GroupSettings, registry: GroupRegistry, remove: Callable[[AnyGroup], None]) -> None:
        self._most = settings.tombstones_a_batch
        self._registry = registry
        self._remove = remove

    def delete(self, group: AnyGroup) -> Deferred[ErrorCode]:
        """Delete an empty group with its offsets; it is gone at once, and back if the log refuses.

        No commit may be on its way to the log: its record would come before the tombstones that miss it. What waits for a
        transaction to end is deleted too.
        """
        records = [offset_tombstone(group.group_id, *each) for each in group.offsets.partitions]
        tombstones = group.tombstones()
        self._remove(group)
        if not group.is_logged:
            return succeed(ErrorCode.NONE)
        return self._write(group, [*records, *tombstones]).addCallback(self._deleted, group)

    def _deleted(self, outcome: ErrorCode, group: AnyGroup) -> ErrorCode:
        if outcome and group.shard.is_active and group.group_id not in self._registry.by_id:
            group.restore()
            self._registry.by_id[group.group_id] = group
        return outcome

    def delete_offsets(self, group: AnyGroup, partitions: Iterable[tuple[str, int]]) -> Deferred[ErrorCode]:
        """Delete some of a group's offsets; they stay visible until the log has the tombstones."""
        doomed = list(partitions)

        def decided(part: slice, outcome: ErrorCode) -> None:
            if not outcome:
                for topic, partition in doomed[part]:
                    group.offsets.remove(topic, partition)

        records = [offset_tombstone(group.group_id, *each) for each in doomed]
        return self._write(group, records, decided)

    def _write(
        self,
        group: AnyGroup,
        records: Sequence[Record],
        decided: Callable[[slice, ErrorCode], None] = lambda part, outcome: None,
    ) -> Deferred[ErrorCode]:
        """Write in batches; fires with the first error. ``decided`` is told which records are in a batch."""
        batch = min(self._most, BATCH_BYTES // (KEY_BYTES + len(group.group_id.encode())))
        writes = []
        for first in range(0, len(records), batch):
            part = slice(first, first + batch)
            writes.append(group.shard.writer.write(records[part], partial(decided, part)))
        results = DeferredList(writes)
        return results.addCallback(lambda pairs: next((code for _, code in pairs if code), ErrorCode.NONE))
