"""InitProducerId for a transactional id: its producer id and next epoch; an open transaction is aborted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.changes import TransactionWriter
from kafkacompat.transactions.registry import ID_BYTES, TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION, ONGOING
from kafkacompat.transactions.transaction import NO_EPOCH, ProducerIdentity, TransactionMetadata
from kafkacompat.wire.errors import ErrorCode, KafkaError


class TransactionalProducers:
    """Assigns producer ids and epochs. ``next_producer_id`` returns a new producer id, or fails with KafkaError."""

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

    async def initialize(self, name: str, timeout_ms: int, expected: ProducerIdentity | None) -> ProducerAnswer:
        """Assign the next epoch to the producer of a transactional id. *expected* is the producer that the client names.

        An open transaction is aborted, and the client has to retry (CONCURRENT_TRANSACTIONS). Fails with KafkaError if a new
        producer id is needed and not available.
        """
        answer = await self._try(name, timeout_ms, expected, None)
        if answer is None:
            answer = await self._try(name, timeout_ms, expected, await self._next_producer_id())
            assert answer is not None
        return answer

    async def _try(
        self, name: str, timeout_ms: int, expected: ProducerIdentity | None, producer_id: int | None
    ) -> ProducerAnswer | None:
        """Return None, without any change, if a new producer id is needed and *producer_id* is None."""
        transactional_id = self._registry.find(name)
        if isinstance(transactional_id, ErrorCode):
            if transactional_id:
                return ProducerAnswer(transactional_id)
            if not self._registry.budget.has_room(ID_BYTES + len(name)):
                return ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if producer_id is None:
                return None
            transactional_id = TransactionalId(
                name, self._registry.shard_for(name), TransactionMetadata(producer_id, NO_EPOCH, timeout_ms)
            )
            self._registry.remember(transactional_id)
        if transactional_id.is_busy:
            return ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        if not transactional_id.current.may_initialize(expected):
            return ProducerAnswer(ErrorCode.PRODUCER_FENCED)
        if not self._needs_producer_id(transactional_id.current, expected):
            producer_id = None
        elif producer_id is None:
            return None
        if transactional_id.current.state is ONGOING:
            return ProducerAnswer(await self._fence(transactional_id, producer_id) or ErrorCode.CONCURRENT_TRANSACTIONS)
        return await self._initialize(transactional_id, timeout_ms, expected, producer_id)

    def _needs_producer_id(self, current: TransactionMetadata, expected: ProducerIdentity | None) -> bool:
        if current.state is ONGOING:
            return current.is_exhausted and self._settings.transaction_version >= EPOCH_BUMP_VERSION
        return current.needs_producer_id(expected)

    async def _initialize(
        self,
        transactional_id: TransactionalId,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        producer_id: int | None,
    ) -> ProducerAnswer:
        try:
            new = transactional_id.current.as_initialized(timeout_ms, expected, producer_id, now_ms(self._clock))
        except KafkaError as problem:
            return ProducerAnswer(problem.code)
        code = await self._changes.write(transactional_id, new)
        return ProducerAnswer(code) if code else ProducerAnswer(code, new.producer)

    async def abort(self, transactional_id: TransactionalId) -> None:
        """Abort an open transaction, unless it changes before a producer id is available."""
        current = transactional_id.current
        producer_id = await self._next_producer_id() if self._needs_producer_id(current, None) else None
        if transactional_id.current is current and not transactional_id.is_busy:
            await self._fence(transactional_id, producer_id)

    async def _fence(self, transactional_id: TransactionalId, producer_id: int | None) -> ErrorCode:
        """Abort an open transaction under an epoch that its producer does not have."""
        version = self._settings.transaction_version
        new = transactional_id.current.as_fenced(version, producer_id, now_ms(self._clock))
        return await self._changes.write(transactional_id, new)
