"""Offsets that are pending: committed in a transaction that is still open.

A pending offset becomes visible with the marker that commits its transaction. The order of the offset records in the log
decides which offset of a partition is the latest, not the order of the markers: a pending offset never replaces a visible one
that was written after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.groups.committed_offset import CommittedOffset, PartitionKey


class PendingOffsets:
    """The pending offsets of one group, in the order of the log. Transactions and partitions without any have no entry."""

    __slots__ = ("_by_partition", "_by_producer")

    def __init__(self) -> None:
        # By partition and producer id; None if a later offset is visible, so that this one never will be.
        self._by_partition: dict[PartitionKey, dict[int, CommittedOffset | None]] = {}
        self._by_producer: dict[int, dict[PartitionKey, None]] = {}

    def __len__(self) -> int:
        return len(self._by_partition)

    def __iter__(self) -> Iterator[PartitionKey]:
        return iter(self._by_partition)

    def __contains__(self, where: object) -> bool:
        return where in self._by_partition

    def commits(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield the offsets that may still become visible, those of a partition in the order of the log."""
        for (topic, partition), waiting in self._by_partition.items():
            for committed in waiting.values():
                if committed is not None:
                    yield topic, partition, committed

    def add(self, producer_id: int, where: PartitionKey, committed: CommittedOffset) -> None:
        """Add the offset whose record is the last one in the log."""
        waiting = self._by_partition.setdefault(where, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = committed
        self._by_producer.setdefault(producer_id, {})[where] = None

    def invalidate(self, where: PartitionKey, by: int | None = None) -> None:
        """Invalidate the offsets before the one of producer *by*, or all of them: a later offset is visible."""
        waiting = self._by_partition.get(where, {})
        for producer_id in waiting:
            if producer_id == by:
                return
            waiting[producer_id] = None

    def remove(self, where: PartitionKey) -> None:
        """Remove all pending offsets of a partition."""
        for producer_id in self._by_partition.pop(where, ()):
            of_producer = self._by_producer[producer_id]
            del of_producer[where]
            if not of_producer:
                del self._by_producer[producer_id]

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> list[tuple[PartitionKey, CommittedOffset]]:
        """End a producer's transaction. Returns the offsets that become visible."""
        visible = []
        for where in self._by_producer.pop(producer_id, ()):
            waiting = self._by_partition[where]
            committed = waiting[producer_id]
            if is_commit and committed is not None:
                self.invalidate(where, producer_id)
                visible.append((where, committed))
            del waiting[producer_id]
            if not waiting:
                del self._by_partition[where]
        return visible
