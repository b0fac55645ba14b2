"""Which transactional ids are here, and in which partition of the transactions topic each is kept."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred

from kafkacompat.groups.coordinator_log import CoordinatorLog
from kafkacompat.groups.shard import Shard, Shards
from kafkacompat.transactions.state import TransactionState
from kafkacompat.transactions.transaction import Transaction
from kafkacompat.wire.errors import ErrorCode


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
    def is_busy(self) -> bool:
        """Whether a change is on its way."""
        return self.pending is not None

    def wait(self) -> Deferred[None]:
        """Fires when no change is on its way any more, or this broker coordinates the id no longer."""
        if self.waiting is None:
            self.waiting = []
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
    """All transactional ids by name, and the shards they live in."""

    def __init__(self, log: CoordinatorLog) -> None:
        super().__init__(log)
        self.ids: dict[str, TransactionalId] = {}

    def find(self, name: str) -> TransactionalId | ErrorCode:
        """The transactional id; NONE when there is no such; else why it is not known whether there is."""
        return self.ids.get(name) or self.check(name)

    def of_shard(self, shard: Shard) -> Iterator[TransactionalId]:
        """The transactional ids kept in one partition."""
        return (each for each in list(self.ids.values()) if each.shard is shard)

    def is_current(self, each: TransactionalId) -> bool:
        """Whether *each* is still the transactional id of its name here."""
        return self.ids.get(each.name) is each

    def forget(self, each: TransactionalId) -> None:
        """Know it no longer."""
        if self.is_current(each):
            del self.ids[each.name]
        each.settle()
