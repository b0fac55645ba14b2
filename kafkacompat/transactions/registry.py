"""The transactional ids of a coordinator, and the shards that they are in."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.registry import Registry
from kafkacompat.coordination.shard import Shard
from kafkacompat.transactions.state import TransactionState
from kafkacompat.transactions.transaction import TransactionMetadata

ID_BYTES = 600
PARTITION_BYTES = 200
"""About how many bytes of memory a transactional id takes, and each partition of its transaction."""

MAX_WAITING = 100
"""Maximum requests that wait for one transactional id: all of them run again after each change."""


class TransactionalId:
    """One transactional id. ``current`` is its state in the log, ``pending`` the state that a change under way leads to.

    ``waiting`` has the requests that wait until no change is under way.
    """

    __slots__ = ("current", "name", "pending", "shard", "waiting")

    def __init__(self, name: str, shard: Shard, current: TransactionMetadata) -> None:
        self.name = name
        self.shard = shard
        self.current = current
        self.pending: TransactionState | None = None
        self.waiting: list[Deferred[None]] | None = None

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        return ID_BYTES + len(self.name) + PARTITION_BYTES * len(self.current.partitions)

    @property
    def is_busy(self) -> bool:
        """Whether a change is under way."""
        return self.pending is not None

    def wait_until_settled(self) -> Deferred[None] | None:
        """Wait until no change is under way, or until this broker no longer coordinates the id.

        Returns None if `MAX_WAITING` requests wait already.
        """
        if self.waiting is None:
            self.waiting = []
        if len(self.waiting) == MAX_WAITING:
            return None
        settled: Deferred[None] = Deferred()
        self.waiting.append(settled)
        return settled

    def settle(self) -> None:
        """End the change under way, and let the waiting requests go on."""
        self.pending = None
        waiting, self.waiting = self.waiting, None
        for deferred in waiting or ():
            deferred.callback(None)


class TransactionalIdRegistry(Registry[TransactionalId]):
    """All transactional ids; together they take at most the memory of ``budget``."""

    def __init__(self, log: CoordinatorLog, budget: MemoryBudget) -> None:
        super().__init__(log)
        self.budget = budget

    def is_current(self, transactional_id: TransactionalId) -> bool:
        """Return whether *transactional_id* is still the one of its name."""
        return self.by_id.get(transactional_id.name) is transactional_id

    def remember(self, transactional_id: TransactionalId) -> None:
        """Add an id that is new."""
        self.by_id[transactional_id.name] = transactional_id
        self.budget.used_bytes += transactional_id.size_bytes

    def take_over(self, ids: Mapping[str, TransactionalId], size_bytes: int) -> None:
        """Add ids that were loaded; together they take *size_bytes* of memory."""
        self.by_id.update(ids)
        self.budget.used_bytes += size_bytes

    def change(self, transactional_id: TransactionalId, new: TransactionMetadata) -> None:
        """Make *new* the current state of a transactional id: it is in the log."""
        self.budget.used_bytes -= transactional_id.size_bytes
        transactional_id.current = new
        self.budget.used_bytes += transactional_id.size_bytes

    def forget(self, transactional_id: TransactionalId) -> None:
        """Remove an id, and let the requests that wait for it look again."""
        if self.is_current(transactional_id):
            self.budget.used_bytes -= transactional_id.size_bytes
            del self.by_id[transactional_id.name]
        transactional_id.settle()
