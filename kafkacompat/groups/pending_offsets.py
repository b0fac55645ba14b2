"""Which offsets wait for transactions to end.

A commit in a transaction counts from the transaction's marker on, if that commits it, and takes its place in the order of
commits by where its own record is in the log: what was written behind it, and counts already, it does not undo.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.groups.committed_offset import CommittedOffset, Where


class PendingOffsets:
    """Those of one group, in the order of the log; no transaction or partition without any is kept."""

    __slots__ = ("_by_partition", "_by_producer")

    def __init__(self) -> None:
        # Of each partition the producers whose transactions are open; None where the commit can count no more.
        self._by_partition: dict[Where, dict[int, CommittedOffset | None]] = {}
        self._by_producer: dict[int, dict[Where, None]] = {}

    def __len__(self) -> int:
        return len(self._by_partition)

    def __iter__(self) -> Iterator[Where]:
        return iter(self._by_partition)

    def __contains__(self, where: object) -> bool:
        return where in self._by_partition

    def commits(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """All that may count yet, a partition's in the order of the log."""
        for (topic, partition), waiting in self._by_partition.items():
            for committed in waiting.values():
                if committed is not None:
                    yield topic, partition, committed

    def add(self, producer_id: int, where: Where, committed: CommittedOffset) -> None:
        """Take in a commit that is behind all others in the log."""
        waiting = self._by_partition.setdefault(where, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = committed
        self._by_producer.setdefault(producer_id, {})[where] = None

    def overtake(self, where: Where, by: int | None = None) -> None:
        """Let those in front of a producer's commit, or all there are, count no more: something behind them counts."""
        waiting = self._by_partition.get(where, {})
        for producer_id in waiting:
            if producer_id == by:
                return
            waiting[producer_id] = None

    def remove(self, where: Where) -> None:
        """Forget all commits for a partition; its transactions have committed nothing there."""
        for producer_id in self._by_partition.pop(where, ()):
            of_producer = self._by_producer[producer_id]
            del of_producer[where]
            if not of_producer:
                del self._by_producer[producer_id]

    def take(self, producer_id: int, *, is_commit: bool) -> list[tuple[Where, CommittedOffset]]:
        """End a producer's transaction; returns what counts from now on."""
        counting = []
        for where in self._by_producer.pop(producer_id, ()):
            waiting = self._by_partition[where]
            committed = waiting[producer_id]
            if is_commit and committed is not None:
                self.overtake(where, producer_id)
                counting.append((where, committed))
            del waiting[producer_id]
            if not waiting:
                del self._by_partition[where]
        return counting
