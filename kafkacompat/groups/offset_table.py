"""The offsets that a group has committed, also those of open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacompat.groups.committed_offset import CommittedOffset, Where
from kafkacompat.groups.pending_offsets import PendingOffsets


class OffsetTable:
    """The committed offsets of one group, by topic and partition.

    ``pending`` are those that wait for transactions to end, ``commits_in_flight`` counts commits on which the log has
    not decided yet.
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

    def __contains__(self, where: Where) -> bool:
        """Whether there is a commit for a partition, also one that waits for a transaction to end."""
        return self.get(*where) is not None or where in self.pending

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        """The commit for one partition, if there is one."""
        return self.by_topic.get(topic, {}).get(partition)

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store a commit in place of all earlier ones."""
        self.by_topic.setdefault(topic, {})[partition] = committed
        if self.pending:
            self.pending.overtake((topic, partition))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Store what a transaction committed, or forget it."""
        for (topic, partition), committed in self.pending.take(producer_id, is_commit=is_commit):
            self.by_topic.setdefault(topic, {})[partition] = committed

    @property
    def partitions(self) -> list[Where]:
        """Every partition with a commit, also one that waits for a transaction to end."""
        there = {(topic, partition): None for topic, partition, _ in self}
        return list(there | dict.fromkeys(self.pending))

    def remove(self, topic: str, partition: int) -> None:
        """Forget what was committed, also in open transactions; a partition without a commit is left as it is."""
        self.pending.remove((topic, partition))
        partitions = self.by_topic.get(topic)
        if partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del self.by_topic[topic]


class OffsetTransactions:
    """The open transactions with offsets in one partition of the offsets topic, and the tables of the groups that these are of."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[OffsetTable, None]] = {}

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, producer_id: int, table: OffsetTable, offsets: Iterable[tuple[str, int, CommittedOffset]]) -> None:
        """Take in commits of a transaction that are in the log now."""
        self._tables.setdefault(producer_id, {})[table] = None
        for topic, partition, committed in offsets:
            table.pending.add(producer_id, (topic, partition), committed)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """A transaction's marker is in the log."""
        for table in self._tables.pop(producer_id, ()):
            table.end_transaction(producer_id, is_commit=is_commit)
