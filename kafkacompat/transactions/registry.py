"""Which transactional ids are here, and in which partition of the transactions topic each is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.shard import Shard, Shards
from kafkacompat.transactions.state import TransactionState
from kafkacompat.transactions.transaction import Transaction
from kafkacompat.wire.errors import ErrorCode

ID_BYTES = 600
PARTITION_BYTES = 200
"""What a transactional id takes, about, and each partition of its transaction."""

MOST_WAITING = 100
"""So many requests wait for one transactional id: each looks again when a change is there."""


class TransactionalId:
    """One transactional id: ``current`` is what the log says, ``pending`` the state that it is about to be in.

    ``waiting`` are told when nothing is pending any more.
    """

    __slots__ = ("current", "name", "pending", "shard", "waiting")

    def __init__(self, name: str, shard: Shard, current: Transaction) -> None:
        self.name = name
        self.shard = shard
        self.current = current
        self.pending: TransactionState | None = None
        self.waiting: list[Deferred[None]] | None = None

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, about."""
        return ID_BYTES + len(self.name) + PARTITION_BYTES * len(self.current.partitions)

    @property
    def is_busy(self) -> bool:
        """Whether a change is on its way."""
        return self.pending is not None

    def wait(self) -> Deferred[None] | None:
        """Fires when no change is on its way any more, or this broker coordinates the id no longer.

        None where too many wait already.
        """
        if self.waiting is None:
            self.waiting = []
        if len(self.waiting) == MOST_WAITING:
            return None
        settled: Deferred[None] = Deferred()
        self.waiting.append(settled)
        return settled

    def settle(self) -> None:
        """Nothing is pending."""
        self.pending = None
        waiting, self.waiting = self.waiting, None
        for each in waiting or ():
            each.callback(None)


class Registry(Shards):
    """All transactional ids by name, and the shards they live in; ``most_bytes`` are for all of them together."""

    def __init__(self, log: CoordinatorLog, most_bytes: int) -> None:
        super().__init__(log)
        self.ids: dict[str, TransactionalId] = {}
        self._most_bytes = most_bytes
        self._used_bytes = 0

    def find(self, name: str) -> TransactionalId | ErrorCode:
        """The transactional id; NONE when there is no such; else why it is not known whether there is."""
        return self.ids.get(name) or self.check(name)

    def of_shard(self, shard: Shard) -> Iterator[TransactionalId]:
        """The transactional ids kept in one partition."""
        return (each for each in list(self.ids.values()) if each.shard is shard)

    def is_current(self, each: TransactionalId) -> bool:
        """Whether *each* is still the transactional id of its name here."""
        return self.ids.get(each.name) is each

    def has_room(self, size_bytes: int) -> bool:
        """Whether so much more may be remembered."""
        return self._used_bytes + size_bytes <= self._most_bytes

    def remember(self, each: TransactionalId) -> None:
        """Know one that was not known before."""
        self.ids[each.name] = each
        self._used_bytes += each.size_bytes

    def take_over(self, ids: Mapping[str, TransactionalId], size_bytes: int) -> None:
        """Know all of these, which take so much memory together."""
        self.ids.update(ids)
        self._used_bytes += size_bytes

    def change(self, each: TransactionalId, new: Transaction) -> None:
        """Let the log say *new* of a transactional id."""
        self._used_bytes -= each.size_bytes
        each.current = new
        self._used_bytes += each.size_bytes

    def forget(self, each: TransactionalId) -> None:
        """Know it no longer."""
        if self.is_current(each):
            self._used_bytes -= each.size_bytes
            del self.ids[each.name]
        each.settle()
