"""Deleting offsets and groups: tombstones first, in batches that the log accepts."""

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
"""Maximum bytes of a batch of tombstones, and of each tombstone besides the group's id."""


class GroupDeletion:
    """Writes tombstones and forgets what they delete; ``remove`` removes a group from the registry."""

    def __init__(self, settings: GroupSettings, registry: GroupRegistry, remove: Callable[[AnyGroup], None]) -> None:
        self._records_a_batch = settings.tombstones_a_batch
        self._registry = registry
        self._remove = remove

    def delete_group(self, group: AnyGroup) -> Deferred[ErrorCode]:
        """Delete an empty group with its offsets, also pending ones. It is gone at once, and back if the log rejects that.

        No commit may be under way: its record would precede tombstones that do not name it.
        """
        records = [offset_tombstone(group.group_id, *partition) for partition in group.offsets.partitions]
        tombstones = group.tombstones()
        self._remove(group)
        if not group.is_logged:
            return succeed(ErrorCode.NONE)
        return self._write(group, [*records, *tombstones]).addCallback(self._restore_if_refused, group)

    def _restore_if_refused(self, outcome: ErrorCode, group: AnyGroup) -> ErrorCode:
        if outcome and group.shard.is_active and group.group_id not in self._registry.by_id:
            group.restore_deleted()
            self._registry.by_id[group.group_id] = group
        return outcome

    def delete_offsets(self, group: AnyGroup, partitions: Iterable[tuple[str, int]]) -> Deferred[ErrorCode]:
        """Delete some of a group's offsets. They stay visible until the log has the tombstones."""
        deletable = list(partitions)

        def on_outcome(part: slice, outcome: ErrorCode) -> None:
            if not outcome:
                for topic, partition in deletable[part]:
                    group.offsets.remove(topic, partition)

        records = [offset_tombstone(group.group_id, *partition) for partition in deletable]
        return self._write(group, records, on_outcome)

    def _write(
        self,
        group: AnyGroup,
        records: Sequence[Record],
        on_outcome: Callable[[slice, ErrorCode], None] = lambda part, outcome: None,
    ) -> Deferred[ErrorCode]:
        """Write in batches; fires with the first error. ``on_outcome`` is called for each batch with its slice of *records*."""
        batch_size = min(self._records_a_batch, BATCH_BYTES // (KEY_BYTES + len(group.group_id.encode())))
        writes = []
        for first in range(0, len(records), batch_size):
            part = slice(first, first + batch_size)
            writes.append(group.shard.writer.write(records[part], partial(on_outcome, part)))
        results = DeferredList(writes)
        return results.addCallback(lambda pairs: next((code for _, code in pairs if code), ErrorCode.NONE))
