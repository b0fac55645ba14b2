"""The offsets that a group has committed, also those of open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacompat.groups.committed_offset import CommittedOffset, PartitionKey
from kafkacompat.groups.pending_offsets import PendingOffsets


class OffsetTable:
    """The committed offsets of one group, by topic and partition.

    ``pending`` holds the offsets of open transactions. ``commits_in_flight`` counts the commits that the log has neither accepted
    nor rejected yet.
    """

    __slots__ = ("by_topic", "commits_in_flight", "pending")

    def __init__(self) -> None:
        self.commits_in_flight = 0
        self.by_topic: dict[str, dict[int, CommittedOffset]] = {}
        self.pending = PendingOffsets()

    def __len__(self) -> int:
        return sum(map(len, self.by_topic.values()))

    def __iter__(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed

    def __contains__(self, where: PartitionKey) -> bool:
        """Return whether a partition has an offset, also a pending one."""
        return self.get(*where) is not None or where in self.pending

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """Return the offset of a partition, None if it has none."""
        return self.by_topic.get(topic, {}).get(partition)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store an offset in place of all earlier ones."""
        self.by_topic.setdefault(topic, {})[partition] = committed
        if self.pending:
            self.pending.invalidate((topic, partition))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Store the offsets of a committed transaction, or drop those of an aborted one."""
        for (topic, partition), committed in self.pending.end_transaction(producer_id, is_commit=is_commit):
            self.by_topic.setdefault(topic, {})[partition] = committed

    @property
    def partitions(self) -> list[PartitionKey]:
        """Every partition with an offset, also a pending one."""
        committed = {(topic, partition): None for topic, partition, _ in self}
        return list(committed | dict.fromkeys(self.pending))

    def remove(self, topic: str, partition: int) -> None:
        """Remove the offset of a partition, also its pending ones; nothing happens if it has none."""
        self.pending.remove((topic, partition))
        partitions = self.by_topic.get(topic)
        if partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del self.by_topic[topic]


class OffsetTransactions:
    """The open transactions with offsets in one partition of the offsets topic, each with the tables of its groups."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[OffsetTable, None]] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, producer_id: int, table: OffsetTable, offsets: Iterable[tuple[str, int, CommittedOffset]]) -> None:
        """Add commits of a transaction that are in the log."""
        self._tables.setdefault(producer_id, {})[table] = None
        for topic, partition, committed in offsets:
            table.pending.add(producer_id, (topic, partition), committed)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """End a transaction: its marker is in the log."""
        for table in self._tables.pop(producer_id, ()):
            table.end_transaction(producer_id, is_commit=is_commit)
