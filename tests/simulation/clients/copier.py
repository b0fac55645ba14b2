"""A copier: a member of a group that consumes records, produces copies and commits the offsets in one transaction (KIP-447)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from random import Random

from twisted.internet.defer import Deferred

from kafkacompat.history.events import HistoryPartition
from kafkacompat.timers import Clock
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.fetcher import Fetcher
from tests.simulation.clients.group_offsets import RecordedCommits
from tests.simulation.clients.group_reader import GroupReader
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.settings import CopierSettings
from tests.simulation.clients.transactional_producer import RecordedTransactions
from tests.simulation.clients.transactions import (
    AbortableTransactionError,
    FatalTransactionError,
    TransactionSession,
)


class Copier:
    """Copies each committed record of some topics once: partition *n* to the target *n* modulo their number.

    *name* is the identity and the number of the first incarnation. ``outcomes`` counts what became of the transactions.
    """

    def __init__(
        self,
        clock: Clock,
        network: MemoryHost,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        sink: HistorySink,
        name: str,
        settings: CopierSettings,
        topics: Sequence[str],
        targets: Sequence[HistoryPartition],
    ) -> None:
        self._session: TransactionSession | None = None
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings.member, self._cap)
        self.fetcher = Fetcher(self.process, settings.member)
        self.fetcher.on_records = self._take
        self.outcomes: Counter[str] = Counter()
        self._settings = settings
        self._targets = list(targets)
        self._main: Deferred[None] = Deferred()
        self._identity, _, incarnation = name.rpartition(".")
        self._incarnation = int(incarnation)
        self._commits = RecordedCommits(self.process)
        self._records: deque[tuple[HistoryPartition, int]] = deque()
        self._reader = GroupReader(self.process, settings.member, self.fetcher, topics)
        self._reader.on_revoked = self._drop
        self._reader.is_busy = lambda: self._is_copying
        self._is_copying = False

    def start(self) -> None:
        """Begin to work."""
        self.process.cluster.watch(dict.fromkeys(place.topic for place in self._targets))
        self._main = self.process.spawn(self._work())

    def stop(self) -> Deferred[None]:
        """End the transaction and leave the group; fires when that is done."""
        return self.process.finish(self._main)

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    def _cap(self, api_key: int) -> int | None:
        return None if self._session is None else self._session.cap(api_key)

    # Records that wait

    def _take(self, place: HistoryPartition, records: list[tuple[int, str]]) -> None:
        self._records.extend((place, offset) for offset, _ in records)

    def _drop(self, places: Sequence[HistoryPartition]) -> None:
        self._records = deque(record for record in self._records if record[0] not in places)

    async def _rewind(self) -> None:
        self._records.clear()
        await self._reader.rewind()

    # Transactions

    async def _work(self) -> None:
        backoff = self.process.make_backoff()
        self._reader.start()
        while not self.process.is_stopping:
            session = self._session = TransactionSession(self.process, self._settings.producer)
            transactions = RecordedTransactions(self.process, f"{self._identity}.{self._incarnation}", session)
            self._incarnation += 1
            try:
                await session.begin()
                # The outcome of the last incarnation's transaction is certain now, and with it the committed offsets.
                await self._rewind()
                while not self.process.is_stopping:
                    await self._copy_some(transactions)
                    backoff.reset()
            except FatalTransactionError:
                self.outcomes["fatal"] += 1
                await self.process.sleep(backoff.next_s())
            session.close()
        await self._reader.membership.leave()

    async def _copy_some(self, transactions: RecordedTransactions) -> None:
        """Copy the records that wait in one transaction, if there are any."""
        rng, settings = self.process.rng, self._settings
        await self.process.sleep(rng.uniform(*settings.pause_s))
        taken = [self._records.popleft() for _ in range(min(len(self._records), settings.max_records))]
        if not taken:
            return
        self._is_copying = True
        try:
            is_committed = await self._copy(transactions, taken)
        finally:
            self._is_copying = False
        if not is_committed:
            await self._rewind()

    async def _copy(self, transactions: RecordedTransactions, taken: list[tuple[HistoryPartition, int]]) -> bool:
        """Copy records in one transaction; return whether it is committed."""
        # Records of a partition that is revoked later are not committed if this member is of an earlier generation then.
        member = self._reader.membership.member
        transactions.begin()
        try:
            for place, offset in taken:
                target = self._targets[place.partition % len(self._targets)]
                transactions.send(target, (place.topic, place.partition, offset))
            offsets = {place: offset + 1 for place, offset in taken}
            numbers = self._commits.record(transactions.name, member.group, offsets, transactions.number)
            await transactions.session.send_offsets(member, offsets)
            self._commits.record_acknowledged(transactions.name, numbers)
            if self.process.rng.random() >= self._settings.producer.abort_share:
                await transactions.commit()
                self.outcomes["committed"] += 1
                return True
        except AbortableTransactionError:
            self.outcomes["failed"] += 1
        await transactions.abort()
        self.outcomes["aborted"] += 1
        return False
