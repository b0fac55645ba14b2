"""An open transaction: adding partitions, verifying them (KIP-890), and ending it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.answers import CodeAnswer, PartitionCodes, ProducerAnswer
from kafkacompat.transactions.changes import TransactionWriter
from kafkacompat.transactions.registry import PARTITION_BYTES, TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import COMPLETION, EPOCH_BUMP_VERSION, ONGOING, EndEffect, Ending
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition, TransactionMetadata
from kafkacompat.wire.errors import ErrorCode


class TransactionProgress:
    """Serves the requests of producers and partitions about transactions.

    ``next_producer_id`` returns a new producer id, or fails with KafkaError.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        registry: TransactionalIdRegistry,
        changes: TransactionWriter,
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

    def add_partitions(
        self, name: str, producer: ProducerIdentity, partitions: Collection[TopicPartition], client_version: int
    ) -> CodeAnswer:
        """Add partitions to the transaction. The first ones begin it."""
        transactional_id = self._find(name)
        if isinstance(transactional_id, ErrorCode):
            return transactional_id
        if transactional_id.is_busy:
            return ErrorCode.CONCURRENT_TRANSACTIONS  # The change under way may assign this producer id and epoch.
        current = transactional_id.current
        if code := _check_producer(current, producer):
            return code
        if current.state is ONGOING and current.partitions.issuperset(partitions):
            return ErrorCode.NONE
        if not self._registry.budget.has_room(PARTITION_BYTES * len(partitions)):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self._changes.write(
            transactional_id, current.with_partitions(partitions, client_version, now_ms(self._clock))
        )

    async def add_partitions_patiently(
        self, name: str, producer: ProducerIdentity, partitions: Collection[TopicPartition], client_version: int
    ) -> ErrorCode:
        """As `add`, but wait up to ``concurrent_wait_ms`` for a change that is under way.

        It may be the completion of the previous transaction, or another partition of the same one.
        """
        deadline = self._clock.seconds() + self._settings.concurrent_wait_ms / 1000
        while True:
            code = self.add_partitions(name, producer, partitions, client_version)
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return await code if isinstance(code, Deferred) else code
            transactional_id, left_s = self._registry.find(name), deadline - self._clock.seconds()
            if isinstance(transactional_id, ErrorCode) or left_s <= 0:
                return code
            settled = transactional_id.wait_until_settled()
            if settled is None:
                return code
            settled.addTimeout(left_s, self._clock)  # type: ignore[arg-type]  # it fits IReactorTime
            await settled.addErrback(lambda _: None)

    def verify(self, name: str, producer: ProducerIdentity, partitions: Collection[TopicPartition]) -> PartitionCodes:
        """Return NONE for each partition in the transaction, TRANSACTION_ABORTABLE for the others."""
        transactional_id = self._find(name)
        code = (
            transactional_id
            if isinstance(transactional_id, ErrorCode)
            else _check_producer(transactional_id.current, producer)
        )
        if isinstance(transactional_id, ErrorCode) or code:
            return dict.fromkeys(partitions, code)
        if transactional_id.current.state in COMPLETION:
            return dict.fromkeys(partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        added = transactional_id.current.partitions
        return {
            partition: ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    # The end

    async def end(self, name: str, producer: ProducerIdentity, ending: Ending, client_version: int) -> ProducerAnswer:
        """Commit or abort the transaction; returns the producer id and epoch of the next one.

        Fails with KafkaError if a new producer id is needed and not available.
        """
        answer = await self._try_end(name, producer, ending, client_version, None)
        if answer is None:
            answer = await self._try_end(name, producer, ending, client_version, await self._next_producer_id())
            assert answer is not None
        return answer

    async def _try_end(
        self, name: str, producer: ProducerIdentity, ending: Ending, client_version: int, producer_id: int | None
    ) -> ProducerAnswer | None:
        """Return None, without any change, if a new producer id is needed and *producer_id* is None."""
        transactional_id = self._find(name)
        if isinstance(transactional_id, ErrorCode):
            return ProducerAnswer(transactional_id)
        current = transactional_id.current
        verdict = current.judge_end(producer, ending, client_version, is_busy=transactional_id.is_busy)
        if isinstance(verdict, ErrorCode):
            return ProducerAnswer(verdict)
        if verdict is not EndEffect.PREPARE:
            has_ended = verdict is EndEffect.ANSWER
            return ProducerAnswer(ErrorCode.NONE, current.producer) if has_ended else _REFUSED
        if client_version < EPOCH_BUMP_VERSION or not current.is_exhausted:
            producer_id = None
        elif producer_id is None:
            return None
        at_ms = now_ms(self._clock)
        new = current.as_prepared(ending, client_version, producer_id, at_ms)
        code = await self._changes.write(transactional_id, new)
        return ProducerAnswer(code) if code else ProducerAnswer(code, new.as_completed(at_ms).producer)


_REFUSED = ProducerAnswer(ErrorCode.INVALID_TXN_STATE)


def _check_producer(current: TransactionMetadata, producer: ProducerIdentity) -> ErrorCode:
    if current.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if current.producer_epoch == producer.producer_epoch else ErrorCode.PRODUCER_FENCED
