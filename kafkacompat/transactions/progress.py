"""A transaction under way: partitions come to it, are asked for (KIP-890), and it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.answers import CodeOrLater, PartitionCodes, ProducerAnswer
from kafkacompat.transactions.changes import Changes
from kafkacompat.transactions.registry import PARTITION_BYTES, TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import COMPLETION, EPOCH_BUMP_VERSION, ONGOING, Ending, OnEnd
from kafkacompat.transactions.transaction import Producer, TopicPartition, Transaction
from kafkacompat.wire.errors import ErrorCode


class Progress:
    """What producers and partitions ask about transactions.

    ``next_producer_id`` gives an id that no other producer has; it fails with KafkaError.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        registry: TransactionalIdRegistry,
        changes: Changes,
        next_producer_id: Callable[[], Awaitable[int]],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._changes = changes
        self._next_producer_id = next_producer_id

    def _find(self, name: str) -> TransactionalId | ErrorCode:
        if not name:
            return ErrorCode.INVALID_REQUEST
        return self._registry.find(name) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    # Partitions

    def add(
        self, name: str, producer: Producer, partitions: Collection[TopicPartition], client_version: int
    ) -> CodeOrLater:
        """Have these partitions in the transaction, which begins with its first."""
        found = self._find(name)
        if isinstance(found, ErrorCode):
            return found
        if found.is_busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS  # The producer may be one that is still on its way.
        current = found.current
        if code := _check_producer(current, producer):
            return code
        if current.state is ONGOING and current.partitions.issuperset(partitions):
            return ErrorCode.NONE
        if not self._registry.budget.has_room(PARTITION_BYTES * len(partitions)):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self._changes.write(found, current.with_partitions(partitions, client_version, now_ms(self._clock)))

    async def add_patiently(
        self, name: str, producer: Producer, partitions: Collection[TopicPartition], client_version: int
    ) -> ErrorCode:
        """As `add`, but what is on its way is waited for, though not for long.

        The transaction before may not be complete yet, or another partition come to the same transaction.
        """
        deadline = self._clock.seconds() + self._settings.concurrent_wait_ms / 1000
        while True:
            code = self.add(name, producer, partitions, client_version)
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return await code if isinstance(code, Deferred) else code
            found, left_s = self._registry.find(name), deadline - self._clock.seconds()
            settled = found.wait() if isinstance(found, TransactionalId) and left_s > 0 else None
            if settled is None:
                return code
            settled.addTimeout(left_s, self._clock)  # type: ignore[arg-type]  # it fits IReactorTime
            await settled.addErrback(lambda _: None)

    def verify(self, name: str, producer: Producer, partitions: Collection[TopicPartition]) -> PartitionCodes:
        """Tell which partitions are in the transaction; one that is not has the code TRANSACTION_ABORTABLE."""
        found = self._find(name)
        code = found if isinstance(found, ErrorCode) else _check_producer(found.current, producer)
        if isinstance(found, ErrorCode) or code:
            return dict.fromkeys(partitions, code)
        if found.current.state in COMPLETION:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        there = found.current.partitions
        return {each: ErrorCode.NONE if each in there else ErrorCode.TRANSACTION_ABORTABLE for each in partitions}

    # The end

    async def end(self, name: str, producer: Producer, ending: Ending, client_version: int) -> ProducerAnswer:
        """Commit or abort; the answer says with which epoch the client goes on.

        Fails with KafkaError when a producer id is needed and there is none to be had.
        """
        answer = await self._try_end(name, producer, ending, client_version, None)
        if answer is None:
            answer = await self._try_end(name, producer, ending, client_version, await self._next_producer_id())
            assert answer is not None
        return answer

    async def _try_end(
        self, name: str, producer: Producer, ending: Ending, client_version: int, producer_id: int | None
    ) -> ProducerAnswer | None:
        """None when nothing was done because a new producer id is needed."""
        found = self._find(name)
        if isinstance(found, ErrorCode):
            return ProducerAnswer(found)
        current = found.current
        verdict = current.judge_end(producer, ending, client_version, is_busy=found.is_busy)
        if isinstance(verdict, ErrorCode):
            return ProducerAnswer(verdict)
        if verdict is not OnEnd.PREPARE:
            is_over = verdict is OnEnd.ANSWER
            return ProducerAnswer(ErrorCode.NONE, current.producer) if is_over else _REFUSED
        if client_version < EPOCH_BUMP_VERSION or not current.is_exhausted:
            producer_id = None
        elif producer_id is None:
            return None
        at_ms = now_ms(self._clock)
        new = current.prepared(ending, client_version, producer_id, at_ms)
        code = await self._changes.write(found, new)
        return ProducerAnswer(code) if code else ProducerAnswer(code, new.completed(at_ms).producer)


_REFUSED = ProducerAnswer(ErrorCode.INVALID_TXN_STATE)


def _check_producer(current: Transaction, producer: Producer) -> ErrorCode:
    if current.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if current.producer_epoch == producer.producer_epoch else ErrorCode.PRODUCER_FENCED
