"""Transactions as a producer makes them: with the coordinator that leads their transactional id's partition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.testing.nasty.broker_access import PATIENCE_S
from kafkacompat.testing.nasty.description import ExpectedRecord, MissingOffsets, NastyTopicError
from kafkacompat.testing.nasty.partition_writer import BatchProducer, PartitionWriter
from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.testing.nasty.broker_access import BrokerAccess
    from kafkacompat.transactions.coordinator import TransactionCoordinator
    from kafkacompat.transactions.transaction import ProducerIdentity
    from kafkacompat.wire.record_batch import NewRecord

TIMEOUT_MS = 60_000
CLIENT_VERSION = 0
"""The transaction version of clients before Kafka 4.0: a producer keeps its epoch from transaction to transaction."""

_TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_COMPLETE = frozenset({"CompleteCommit", "CompleteAbort"})


class TransactionalWriter:
    """A producer with a transactional id, which writes one transaction after the other to one partition."""

    def __init__(self, access: BrokerAccess, writer: PartitionWriter, transactional_id: str) -> None:
        self._access = access
        self._writer = writer
        self._id = transactional_id
        self._sequence = 0
        self._is_open = False
        self._coordinator: TransactionCoordinator
        self._producer: ProducerIdentity

    @classmethod
    async def start(cls, access: BrokerAccess, writer: PartitionWriter, transactional_id: str) -> TransactionalWriter:
        """Return a producer that the coordinator has initialized."""
        producer = cls(access, writer, transactional_id)
        await access.brokers[0].coordinators.transactions.ensure_topic()
        producer._coordinator = await producer._find_coordinator()
        await producer._initialize()
        return producer

    async def _find_coordinator(self) -> TransactionCoordinator:
        index = self._access.brokers[0].coordinators.transactions.partition_for(self._id)
        return (await self._access.find_broker_of(TRANSACTION_TOPIC, index)).coordinators.transactions

    async def _initialize(self) -> None:
        async def initialize() -> ErrorCode:
            answer = await self._coordinator.initialize(self._id, TIMEOUT_MS, None)
            self._producer = answer.producer
            return answer.error_code

        await self._repeat(initialize, f"transactional id '{self._id}' cannot be initialized")

    async def send(self, records: Sequence[NewRecord], *, codec: int = 0) -> list[ExpectedRecord]:
        """Append records as one batch of the open transaction; the first batch begins one."""
        await self._begin()
        partition, producer = self._writer.partition, self._producer
        guard = partition.guard(producer.producer_id, producer.producer_epoch, self._sequence, begins_at_zero=False)
        sender = BatchProducer(producer.producer_id, producer.producer_epoch, self._sequence, is_transactional=True)
        sent = await self._writer.append(records, codec=codec, producer=sender, guard=guard)
        self._sequence += len(records)
        return sent

    async def _begin(self) -> None:
        if self._is_open:
            return
        partitions = [(self._writer.topic, self._writer.index)]

        async def add_partition() -> ErrorCode:
            answer = self._coordinator.add_partitions(self._id, self._producer, partitions, CLIENT_VERSION)
            return await answer if isinstance(answer, Deferred) else answer

        await self._repeat(add_partition, f"the transaction of '{self._id}' cannot begin")
        self._is_open = True

    async def _repeat(self, request: Callable[[], Awaitable[ErrorCode]], problem: str) -> None:
        """Repeat a request while its error passes by itself. Raises NastyTopicError for any other error, or after PATIENCE_S."""
        deadline = self._access.clock.seconds() + PATIENCE_S
        while (code := await request()) in _TRY_AGAIN and self._access.clock.seconds() < deadline:
            await self._access.pause()
        _refuse(code, problem)

    async def commit(self) -> MissingOffsets:
        """Commit the transaction; returns the offset of its marker."""
        return await self._end(Ending.COMMIT)

    async def abort(self) -> MissingOffsets:
        """Abort the transaction; returns the offset of its marker."""
        return await self._end(Ending.ABORT)

    async def _end(self, ending: Ending) -> MissingOffsets:
        marker_offset = self._writer.end_offset
        answer = await self._coordinator.end(self._id, self._producer, ending, CLIENT_VERSION)
        _refuse(answer.error_code, f"the transaction of '{self._id}' cannot end")
        await self._access.wait_for(self._find_completion, f"the markers of '{self._id}'")
        self._is_open = False
        word = "commit" if ending is Ending.COMMIT else "abort"
        return MissingOffsets(self._writer.index, marker_offset, marker_offset, f"{word} marker")

    def _find_completion(self) -> bool | None:
        return self._coordinator.describe(self._id).transaction_state in _COMPLETE or None


def hide_aborted(records: Sequence[ExpectedRecord]) -> MissingOffsets:
    """Return the offsets of a batch of an aborted transaction: consumers of committed records do not receive them."""
    first, last = records[0], records[-1]
    return MissingOffsets(first.partition, first.offset, last.offset, "aborted transaction", only_committed=True)


def _refuse(code: ErrorCode, problem: str) -> None:
    if code:
        raise NastyTopicError(f"{problem}: {ErrorCode(code).name}")
