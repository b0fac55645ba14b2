"""InitProducerId for a transactional id: a producer id or its next epoch, and the end of what is still open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kafkacompat.timers import Clock, now_ms
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.changes import Changes
from kafkacompat.transactions.registry import ID_BYTES, TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION, ONGOING
from kafkacompat.transactions.transaction import NO_EPOCH, Producer, Transaction
from kafkacompat.wire.errors import ErrorCode, KafkaError


class Producers:
    """``next_producer_id`` gives an id that no other producer has; it fails with KafkaError."""

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

    async def initialize(self, name: str, timeout_ms: int, expected: Producer | None) -> ProducerAnswer:
        """Give the producer of a transactional id an epoch of its own; *expected* is who it says it was.

        A transaction that is open is aborted, and the client asks again (CONCURRENT_TRANSACTIONS). Fails with
        KafkaError when a producer id is needed and there is none to be had.
        """
        answer = await self._try(name, timeout_ms, expected, None)
        if answer is None:
            answer = await self._try(name, timeout_ms, expected, await self._next_producer_id())
            assert answer is not None
        return answer

    async def _try(
        self, name: str, timeout_ms: int, expected: Producer | None, producer_id: int | None
    ) -> ProducerAnswer | None:
        """None when nothing was done because a new producer id is needed."""
        found = self._registry.find(name)
        if isinstance(found, ErrorCode):
            if found:
                return ProducerAnswer(found)
            if not self._registry.budget.has_room(ID_BYTES + len(name)):
                return ProducerAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if producer_id is None:
                return None
            found = TransactionalId(
                name, self._registry.shard_for(name), Transaction(producer_id, NO_EPOCH, timeout_ms)
            )
            self._registry.remember(found)
        if found.is_busy:
            return ProducerAnswer(ErrorCode.CONCURRENT_TRANSACTIONS)
        if not found.current.may_initialize(expected):
            return ProducerAnswer(ErrorCode.PRODUCER_FENCED)
        if not self._needs_producer_id(found.current, expected):
            producer_id = None
        elif producer_id is None:
            return None
        if found.current.state is ONGOING:
            return ProducerAnswer(await self._fence(found, producer_id) or ErrorCode.CONCURRENT_TRANSACTIONS)
        return await self._initialize(found, timeout_ms, expected, producer_id)

    def _needs_producer_id(self, current: Transaction, expected: Producer | None) -> bool:
        if current.state is ONGOING:
            return current.is_exhausted and self._settings.transaction_version >= EPOCH_BUMP_VERSION
        return current.needs_producer_id(expected)

    async def _initialize(
        self, transactional_id: TransactionalId, timeout_ms: int, expected: Producer | None, producer_id: int | None
    ) -> ProducerAnswer:
        try:
            new = transactional_id.current.initialized(timeout_ms, expected, producer_id, now_ms(self._clock))
        except KafkaError as problem:
            return ProducerAnswer(problem.code)
        code = await self._changes.write(transactional_id, new)
        return ProducerAnswer(code) if code else ProducerAnswer(code, new.producer)

    async def abort(self, transactional_id: TransactionalId) -> None:
        """Abort a transaction that its producer has left open; nothing if it has not, after all."""
        current = transactional_id.current
        producer_id = await self._next_producer_id() if self._needs_producer_id(current, None) else None
        if transactional_id.current is current and not transactional_id.is_busy:
            await self._fence(transactional_id, producer_id)

    async def _fence(self, transactional_id: TransactionalId, producer_id: int | None) -> ErrorCode:
        """End an open transaction under an epoch that its producer does not have."""
        version = self._settings.transaction_version
        new = transactional_id.current.fenced(version, producer_id, now_ms(self._clock))
        return await self._changes.write(transactional_id, new)
