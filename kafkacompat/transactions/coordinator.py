"""The transaction coordinator: the methods that handlers call, and the elections of its partitions.

Each transactional id belongs to one partition of `__transaction_state`; the leader of the partition coordinates its transactions.
The parts: `producers` assigns producer ids and epochs. `progress` adds partitions and ends transactions. `transaction` computes
each change as `state` allows, and `changes` writes it. `completion` writes `markers` to the partitions. `expiration` aborts
transactions that are open for too long, and forgets unused ids. `administration` describes and lists ids, and `loader` reads them
from the log. Everything runs on the reactor thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.leadership import Leadership
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.shard import Shard
from kafkacompat.coordination.writer import ShardWriter
from kafkacompat.timers import Clock, make_cooperator, yield_in_turns
from kafkacompat.transactions.administration import Listed, TransactionAdministration, TransactionFilters
from kafkacompat.transactions.answers import CodeAnswer, PartitionCodesAnswer, ProducerAnswer
from kafkacompat.transactions.completion import Completion, MarkerTransport
from kafkacompat.transactions.expiration import TransactionExpiration
from kafkacompat.transactions.loader import TransactionLoader
from kafkacompat.transactions.markers import MarkerWriter
from kafkacompat.transactions.producers import TransactionalProducers
from kafkacompat.transactions.progress import TransactionProgress
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION, Ending
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.wire.apis.describe_transactions import TransactionState
from kafkacompat.wire.errors import ErrorCode, KafkaError


class TransactionCoordinator:
    """Coordinates the transactions of the `__transaction_state` partitions that this broker leads.

    ``ensure_topic`` creates that topic unless it exists, and fires when its partitions have leaders. ``next_producer_id`` returns a
    new producer id, or fails with KafkaError. ``markers`` writes markers to partitions of this broker; ``transport`` brings those of
    this coordinator's transactions to the leaders of their partitions. ``is_deleted`` fires with True only if the committed metadata
    does not have a partition. Deferreds that methods return do not fail.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        transaction_log: CoordinatorLog,
        ensure_topic: Callable[[], Deferred[None]],
        next_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerWriter,
        transport: MarkerTransport,
        is_deleted: Callable[[str, int], Deferred[bool]],
    ) -> None:
        self.ensure_topic = ensure_topic
        self.markers = markers
        self.settings = settings
        self._clock = clock
        self._log = transaction_log
        self._registry = registry = TransactionalIdRegistry(
            transaction_log, MemoryBudget(settings.transactional_ids_max_bytes)
        )
        self._leadership = Leadership(
            registry, transaction_log, make_cooperator(clock), TransactionLoader, self._on_loaded
        )
        self._completion = Completion(clock, settings, registry, transport, is_deleted)
        changes = self._completion.changes
        self._producers = TransactionalProducers(clock, settings, registry, changes, next_producer_id)
        self._progress = TransactionProgress(clock, settings, registry, changes, next_producer_id)
        self._administration = TransactionAdministration(clock, registry)
        self._expiration = TransactionExpiration(clock, settings, registry, self._producers)

    @property
    def ids(self) -> Mapping[str, TransactionalId]:
        """The transactional ids that this broker coordinates, by name."""
        return self._registry.by_id

    # Elections

    def start(self) -> None:
        """Start to look regularly for transactions that are open for too long, and for unused ids."""
        self._expiration.start()

    def stop(self) -> None:
        """Resign all partitions, so that waiting clients look for the coordinator again, and stop all timers."""
        self._registry.is_stopped = True
        self._expiration.stop()
        for partition in list(self._registry.shards):
            self._leadership.resign_shard(partition)
        for transactional_id in list(self._registry.by_id.values()):
            self._registry.forget(transactional_id)

    def on_election(self, partition: int, leader_epoch: int) -> Deferred[None]:
        """Load a partition that this broker leads from now on, and complete its decided transactions; fires when it is ready.

        An empty partition is ready at once. A partition that this broker leads already stays as it is;
        its markers have the later leader epoch from now on.
        """
        writer = ShardWriter(partition, self._log, self._clock, timeout_ms=self.settings.request_timeout_ms)
        return self._leadership.load_shard(Shard(partition, writer, leader_epoch))

    def _on_loaded(self, shard: Shard, loader: TransactionLoader) -> None:
        self._registry.take_over(loader.ids, loader.size_bytes)
        Deferred.fromCoroutine(self._complete(shard, loader.decided.values()))

    async def _complete(self, shard: Shard, decided: Iterable[TransactionalId]) -> None:
        async for transactional_id in yield_in_turns(self._clock, decided):
            if shard.is_active:
                self._completion.begin_completion(transactional_id)

    def on_resignation(self, partition: int) -> None:
        """Forget the transactional ids of a partition that this broker no longer leads."""
        shard = self._leadership.resign_shard(partition)
        for transactional_id in self._registry.in_shard(shard) if shard is not None else ():
            self._registry.forget(transactional_id)

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of the topic that a transactional id belongs to."""
        return self._registry.partition_for(transactional_id)

    # For producers

    def initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Deferred[ProducerAnswer]:
        """InitProducerId: the producer id and epoch that write for the transactional id from now on."""
        answer = Deferred.fromCoroutine(self._producers.initialize(transactional_id, timeout_ms, expected))
        return answer.addErrback(_as_refusal)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        client_version: int,
    ) -> CodeAnswer:
        """AddPartitionsToTxn, AddOffsetsToTxn: add partitions to the transaction. The first ones begin it."""
        code = self._progress.add_partitions(transactional_id, producer, partitions, client_version)
        if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            return code
        adding = self._progress.add_partitions_patiently(transactional_id, producer, partitions, client_version)
        return Deferred.fromCoroutine(adding)

    def end(
        self, transactional_id: str, producer: ProducerIdentity, ending: Ending, client_version: int
    ) -> Deferred[ProducerAnswer]:
        """EndTxn; fires once the log has the decision how the transaction ends."""
        answer = Deferred.fromCoroutine(self._progress.end(transactional_id, producer, ending, client_version))
        return answer.addErrback(_as_refusal)

    # For partitions

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> PartitionCodesAnswer:
        """Return for each partition whether it is in the transaction, so that its log may accept records of it (KIP-890).

        With *add*, for clients of transaction version 2, missing partitions are added; without, they have the code
        TRANSACTION_ABORTABLE. Any other code is the coordinator's, and the same for all partitions.
        """
        producer = ProducerIdentity(producer_id, producer_epoch)
        if not add:
            return self._progress.verify(transactional_id, producer, partitions)
        code = self.add_partitions(transactional_id, producer, partitions, EPOCH_BUMP_VERSION)
        if isinstance(code, Deferred):
            return code.addCallback(lambda code: dict.fromkeys(partitions, code))
        return dict.fromkeys(partitions, code)

    # For administrators

    def describe(self, transactional_id: str) -> TransactionState:
        """DescribeTransactions for one transactional id."""
        return self._administration.describe(transactional_id)

    def list(self, filters: TransactionFilters) -> Deferred[ErrorCode | Listed]:
        """ListTransactions."""
        return Deferred.fromCoroutine(self._administration.list(filters))


def _as_refusal(failure: Failure) -> ProducerAnswer:
    failure.trap(KafkaError)
    assert isinstance(failure.value, KafkaError)
    return ProducerAnswer(failure.value.code)
