"""A transaction coordinator on a clock that only tests advance, and the requests of producers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from twisted.internet.defer import Deferred, maybeDeferred, succeed

from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.completion import MarkerTransport
from kafkacompat.transactions.coordinator import TransactionCoordinator
from kafkacompat.transactions.markers import MarkerWriter
from kafkacompat.transactions.settings import TransactionSettings
from kafkacompat.transactions.state import Ending
from kafkacompat.transactions.transaction import ProducerIdentity, TopicPartition
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.coordinator_log import FakeCoordinatorLog
from tests.fakes.marked_partitions import FakePartitions
from tests.kafkacompat.groups.support import TurningClock, is_waiting, take_response

__all__ = ["ID", "NONE", "P0", "P1", "TIMEOUT_MS", "TiringClock", "World", "is_waiting", "take_response"]

ID = "tx"
NONE = ErrorCode.NONE
TIMEOUT_MS = 60_000
P0, P1 = ("t", 0), ("t", 1)


class TiringClock(TurningClock):
    """A clock that advances by ``look_s`` seconds whenever it is read."""

    look_s = 0.0

    def seconds(self) -> float:
        self.rightNow += self.look_s
        return self.rightNow


class World:
    """One coordinator that leads every partition of a fake transactions log, in a leader epoch."""

    def __init__(
        self,
        log: FakeCoordinatorLog | None = None,
        partitions: FakePartitions | None = None,
        *,
        leader_epoch: int = 0,
        clock: TurningClock | None = None,
        producer_ids: Iterator[int] | None = None,
        transport: MarkerTransport | None = None,
        turns: int = 5,
        **settings: int,
    ) -> None:
        self.clock = clock or TurningClock()
        if clock is None:
            self.clock.advance(1_000_000)
        self.log = log or FakeCoordinatorLog()
        self.partitions = partitions or FakePartitions()
        self.leader_epoch = leader_epoch
        self.producer_ids = producer_ids or count(100)
        self.ended: list[tuple[int, int, bool]] = []
        self.allocating: Deferred[int] | None = None
        markers = MarkerWriter(self.clock, self.partitions.find, self._end_transaction)
        self.coordinator = TransactionCoordinator(
            self.clock,
            TransactionSettings(**settings),
            self.log,
            lambda: succeed(None),
            self._next_producer_id,
            markers,
            transport or markers,
            lambda topic, partition: succeed(self.partitions.is_deleted(topic, partition)),
        )
        for partition in range(self.log.partition_count):
            self.coordinator.on_election(partition, leader_epoch)
        self.coordinator.start()
        self.turn(turns)

    def _end_transaction(
        self, partition: int, producer_id: int, is_commit: bool, append: Callable[[], object]
    ) -> Deferred[ErrorCode]:
        def decided(outcome: object) -> ErrorCode:
            self.ended.append((partition, producer_id, is_commit))
            return ErrorCode.NONE

        return maybeDeferred(append).addCallbacks(decided, lambda failure: failure.value.code)

    def _next_producer_id(self) -> Deferred[int]:
        if self.allocating is not None:
            return self.allocating
        return succeed(next(self.producer_ids))

    def restarted(self, *, transport: MarkerTransport | None = None, turns: int = 5, **settings: int) -> World:
        """Another coordinator on the same logs after this one was killed, with everything loaded."""
        for call in list(self.clock.calls):
            call.cancel()
        return World(
            self.log,
            self.partitions,
            leader_epoch=self.leader_epoch + 1,
            clock=self.clock,
            producer_ids=self.producer_ids,
            transport=transport,
            turns=turns,
            **settings,
        )

    def wait(self, seconds: int) -> None:
        """Let time pass second by second."""
        self.clock.pump([1] * seconds)

    def turn(self, times: int = 1) -> None:
        """Turn the reactor without letting time pass."""
        for _ in range(times):
            self.clock.turn()

    # Requests

    def ask(
        self, name: str = ID, expected: ProducerIdentity | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Deferred[ProducerAnswer]:
        return self.coordinator.initialize(name, timeout_ms, expected)

    def init(
        self, name: str = ID, expected: ProducerIdentity | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> ProducerIdentity:
        """Return an initialized producer."""
        answer = take_response(self.ask(name, expected, timeout_ms))
        assert answer.error_code is NONE, answer
        return answer.producer

    def add(
        self, producer: ProducerIdentity, *partitions: TopicPartition, name: str = ID, version: int = 0
    ) -> ErrorCode:
        """Add partitions; wait for a busy id as long as the coordinator does."""
        code = self.coordinator.add_partitions(name, producer, partitions or (P0,), version)
        if is_waiting(code):
            self.clock.advance(0.11)
        return take_response(code)

    def end(
        self, producer: ProducerIdentity, commit: bool = True, *, name: str = ID, version: int = 0
    ) -> ProducerAnswer:
        return take_response(self.ending(producer, commit, name=name, version=version))

    def ending(
        self, producer: ProducerIdentity, commit: bool = True, *, name: str = ID, version: int = 0
    ) -> Deferred[ProducerAnswer]:
        return self.coordinator.end(name, producer, Ending.COMMIT if commit else Ending.ABORT, version)

    # Queries

    def state(self, name: str = ID) -> str:
        return self.coordinator.describe(name).transaction_state

    def markers(self, partition: TopicPartition = P0) -> list[tuple[int, int, bool]]:
        """The markers of a partition: (producer id, its epoch, does it commit?)."""
        return [
            (marker.producer_id, marker.producer_epoch, marker.is_commit)
            for marker in self.partitions.all[partition].markers
        ]

    def refuse(self, partition: TopicPartition, code: ErrorCode | None) -> None:
        """Let a partition reject markers, or accept them again."""
        self.partitions.all[partition].refuse_with = code

    def no_producer_ids(self) -> None:
        """Let the controller have no producer ids."""
        self.allocating = Deferred()
        self.allocating.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the store is broken"))
