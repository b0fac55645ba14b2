"""A transactional producer: commits, aborts, stalls, and comes back with the same transactional id after it was fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from twisted.internet.defer import Deferred

from kafkacompat.history.events import Acknowledged, End, Ended, HistoryPartition, Send
from kafkacompat.history.index import value_text
from kafkacompat.timers import Clock
from tests.fakes.memory_network import MemoryHost
from tests.simulation.clients.batches import Batch, BatchValue
from tests.simulation.clients.process import ClientProcess, HistorySink
from tests.simulation.clients.settings import TransactionalSettings
from tests.simulation.clients.transactions import (
    AbortableTransactionError,
    FatalTransactionError,
    TransactionSession,
)

STALL = 1.5
"""A stalled transaction stays open for this multiple of its timeout."""

LONGEST_HAUNT_S = 0.3


class RecordedTransactions:
    """The transactions of one incarnation, named `<identity>.<incarnation>` in the history, with what they send."""

    def __init__(self, process: ClientProcess, name: str, session: TransactionSession) -> None:
        self.name = name
        self.session = session
        self.number = 0
        self._process = process
        self._values = 0
        session.sender.on_delivered = self._note_delivered

    def begin(self) -> None:
        """Begin the next transaction."""
        self.number += 1

    def send(self, place: HistoryPartition, source: tuple[str, int, int] | None = None) -> None:
        """Send the next value."""
        process, number = self._process, self._values
        self._values += 1
        process.record(Send(process.now_ns(), self.name, number, place, self.number, source))
        value = BatchValue(number, value_text(self.name, number), int(process.clock.seconds() * 1000))
        self.session.send(place, value)

    async def commit(self) -> None:
        """Commit; raises AbortableTransactionError, or FatalTransactionError with an unknown outcome."""
        await self.session.flush()
        await self._end(commit=True)

    async def abort(self) -> None:
        """Abort; raises FatalTransactionError."""
        await self.session.give_up()
        await self._end(commit=False)

    async def _end(self, *, commit: bool) -> None:
        self._process.record(End(self._process.now_ns(), self.name, self.number, commit))
        await self.session.end(commit=commit)
        self._process.record(Ended(self._process.now_ns(), self.name, self.number, commit))

    def _note_delivered(self, batch: Batch, offset: int) -> None:
        if batch.has_doubtful_sequence:
            return
        for delta, value in enumerate(batch.values):
            at = offset + delta if offset >= 0 else -1
            self._process.record(Acknowledged(self._process.now_ns(), self.name, value.number, at))


class TransactionalProducer:
    """Sends values to some partitions in transactions.

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
        settings: TransactionalSettings,
        places: Sequence[HistoryPartition],
    ) -> None:
        self._session: TransactionSession | None = None
        self.process = ClientProcess(clock, network, rng, bootstrap, sink, name, settings, self._cap)
        self.outcomes: Counter[str] = Counter()
        self._settings = settings
        self._places = list(places)
        self._main: Deferred[None] = Deferred()
        self._identity, _, incarnation = name.rpartition(".")
        self._incarnation = int(incarnation)

    def start(self) -> None:
        """Begin to work."""
        self.process.cluster.watch(dict.fromkeys(place.topic for place in self._places))
        self._main = self.process.spawn(self._work())

    def stop(self) -> Deferred[None]:
        """Begin no new transaction; fires when the last one has ended."""
        return self.process.finish(self._main)

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    def _cap(self, api_key: int) -> int | None:
        return None if self._session is None else self._session.cap(api_key)

    async def _work(self) -> None:
        backoff = self.process.make_backoff()
        while not self.process.is_stopping:
            session = self._session = TransactionSession(self.process, self._settings)
            transactions = RecordedTransactions(self.process, f"{self._identity}.{self._incarnation}", session)
            self._incarnation += 1
            try:
                await session.begin()
                while not self.process.is_stopping and not await self._run_transaction(transactions):
                    backoff.reset()
            except FatalTransactionError:
                self.outcomes["fatal"] += 1
                session.close()
                await self.process.sleep(backoff.next_s())

    async def _run_transaction(self, transactions: RecordedTransactions) -> bool:
        """Run one transaction; return whether the incarnation is left to itself with it."""
        rng, settings = self.process.rng, self._settings
        transactions.begin()
        for _ in range(rng.randint(1, settings.max_transaction_records)):
            if not transactions.session.is_failed:
                transactions.send(rng.choice(self._places))
                await self.process.sleep(rng.uniform(*settings.pause_s))
        if rng.random() < settings.stall_share:
            await self.process.sleep(settings.transaction_timeout_s * STALL)
        if rng.random() < settings.zombie_share:
            self.process.spawn(self._haunt(transactions))
            return True
        wants_commit = rng.random() >= settings.abort_share
        try:
            if wants_commit:
                await transactions.commit()
                self.outcomes["committed"] += 1
                return False
        except AbortableTransactionError:
            self.outcomes["failed"] += 1
        await transactions.abort()
        self.outcomes["aborted"] += 1
        return False

    async def _haunt(self, transactions: RecordedTransactions) -> None:
        """Try to commit a transaction while the next incarnation begins."""
        await self.process.sleep(self.process.rng.uniform(0, LONGEST_HAUNT_S))
        try:
            await transactions.commit()
            self.outcomes["committed by a zombie"] += 1
        except (AbortableTransactionError, FatalTransactionError):
            self.outcomes["fenced"] += 1
        transactions.session.close()
