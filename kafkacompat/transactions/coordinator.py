"""The transaction coordinator: what handlers call, and what tells it which partitions it leads.

Each transactional id lives in one partition of `__transaction_state`; whoever leads the partition coordinates its
transactions. The parts: `producers` gives epochs, `progress` has partitions added and transactions ended, `changes`
writes what `transaction` computes as `state` allows, `completion` tells the partitions through `markers`, `expiration`
aborts and forgets, `administration` tells, `loader` reads it all back from the log. Everything runs on the reactor
thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.coordination.coordinator_log import CoordinatorLog
from kafkacompat.coordination.leadership import Leadership
from kafkacompat.coordination.memory_budget import MemoryBudget
from kafkacompat.coordination.shard import Shard
from kafkacompat.coordination.writer import Writer
from kafkacompat.timers import Clock, cooperator, in_turns
from kafkacompat.transactions.administration import Administration, Filters, Listed
from kafkacompat.transactions.answers import CodeOrLater, PartitionCodesOrLater, ProducerAnswer
from kafkacompat.transactions.completion import Completion
from kafkacompat.transactions.expiration import Expiration
from kafkacompat.transactions.loader import Loader
from kafkacompat.transactions.markers import MarkerWriter
from kafkacompat.transactions.producers import Producers
from kafkacompat.transactions.progress import Progress
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION, Ending
from kafkacompat.transactions.transaction import Producer, TopicPartition
from kafkacompat.wire.apis.describe_transactions import TransactionState
from kafkacompat.wire.errors import ErrorCode, KafkaError


class TransactionCoordinator:
    """Coordinates the transactions of the `__transaction_state` partitions that this broker leads.

    ``ensure_topic`` creates that topic unless it is there, and fires when its partitions have leaders;
    ``next_producer_id`` gives an id that no other producer has, or fails with KafkaError; ``is_deleted`` is certain
    that a partition does not exist. Deferreds that methods return do not fail.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TransactionSettings,
        transaction_log: CoordinatorLog,
        ensure_topic: Callable[[], Deferred[None]],
        next_producer_id: Callable[[], Awaitable[int]],
        markers: MarkerWriter,
        is_deleted: Callable[[str, int], bool],
    ) -> None:
        self.ensure_topic = ensure_topic
        self.markers = markers
        self.settings = settings
        self._clock = clock
        self._log = transaction_log
        self._registry = registry = TransactionalIdRegistry(
            transaction_log, MemoryBudget(settings.transactional_ids_max_bytes)
        )
        self._leadership = Leadership(registry, transaction_log, cooperator(clock), Loader, self._loaded)
        self._completion = Completion(clock, settings, registry, markers, is_deleted)
        changes = self._completion.changes
        self._producers = Producers(clock, settings, registry, changes, next_producer_id)
        self._progress = Progress(clock, settings, registry, changes, next_producer_id)
        self._administration = Administration(clock, registry)
        self._expiration = Expiration(clock, settings, registry, self._producers)

    # Which partitions are ours

    def start(self) -> None:
        """Begin to look for transactions that are open for too long, and ids that nobody uses."""
        self._expiration.start()

    def stop(self) -> None:
        """Tell everybody who waits to look for the coordinator again, and stop all timers."""
        self._registry.is_stopped = True
        self._expiration.stop()
        for partition in list(self._registry.shards):
            self._leadership.give_up(partition)
        for each in list(self._registry.by_id.values()):
            self._registry.forget(each)

    def on_election(self, partition: int, leader_epoch: int) -> Deferred[None]:
        """This broker leads a partition of the topic: load what is in it, and complete what is decided.

        Fires when it can be used: an empty partition at once. A partition that is ours already is left as it is.
        """
        writer = Writer(partition, self._log, self._clock, timeout_ms=self.settings.request_timeout_ms)
        return self._leadership.take(Shard(partition, writer, leader_epoch))

    def _loaded(self, shard: Shard, loader: Loader) -> None:
        self._registry.take_over(loader.ids, loader.size_bytes)
        Deferred.fromCoroutine(self._complete(shard, loader.decided.values()))

    async def _complete(self, shard: Shard, decided: Iterable[TransactionalId]) -> None:
        async for each in in_turns(self._clock, decided):
            if shard.is_active:
                self._completion.begin(each)

    def on_resignation(self, partition: int) -> None:
        """This broker leads a partition no longer: forget what is in it."""
        shard = self._leadership.give_up(partition)
        for each in self._registry.in_shard(shard) if shard is not None else ():
            self._registry.forget(each)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of the topic that a transactional id belongs to."""
        return self._registry.partition_for(transactional_id)

    # For producers

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Deferred[ProducerAnswer]:
        """InitProducerId: who writes for the transactional id from now on."""
        answer = Deferred.fromCoroutine(self._producers.initialize(transactional_id, timeout_ms, expected))
        return answer.addErrback(_refused)

    def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], client_version: int
    ) -> CodeOrLater:
        """AddPartitionsToTxn, AddOffsetsToTxn: have partitions in the transaction, which begins with its first."""
        code = self._progress.add(transactional_id, producer, partitions, client_version)
        if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            return code
        adding = self._progress.add_patiently(transactional_id, producer, partitions, client_version)
        return Deferred.fromCoroutine(adding)

    def end(
        self, transactional_id: str, producer: Producer, ending: Ending, client_version: int
    ) -> Deferred[ProducerAnswer]:
        """EndTxn; the answer comes when nothing can change any more how the transaction ends."""
        answer = Deferred.fromCoroutine(self._progress.end(transactional_id, producer, ending, client_version))
        return answer.addErrback(_refused)

    # For partitions

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> PartitionCodesOrLater:
        """Whether records of a transaction may go to partitions that know of none (KIP-890).

        With *add*, for clients of transaction version 2, they come to be in it; without, those that are not have the
        code TRANSACTION_ABORTABLE. Any other code is the same for all of them, and the coordinator's.
        """
        producer = Producer(producer_id, producer_epoch)
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

    def list(self, filters: Filters) -> Deferred[ErrorCode | Listed]:
        """ListTransactions."""
        return Deferred.fromCoroutine(self._administration.list(filters))


def _refused(failure: Failure) -> ProducerAnswer:
    failure.trap(KafkaError)
    assert isinstance(failure.value, KafkaError)
    return ProducerAnswer(failure.value.code)
