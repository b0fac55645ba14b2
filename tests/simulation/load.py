"""The clients of a run, and the verdict on what they saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.history.events import ISOLATIONS, Event, HistoryPartition, Read
from tests.simulation.clients.consumer import Consumer
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.settings import ConsumerSettings, ProducerSettings, TransactionalSettings
from tests.simulation.clients.transactional_producer import TransactionalProducer
from tests.simulation.verdict import judge

if TYPE_CHECKING:
    from tests.simulation.world import World

PAUSE_S = (0.05, 0.5)
READ_S = 25.0
"""Time that a reader has to reach the end of what it reads."""


class _Kind(NamedTuple):
    """A kind of client: its class, its settings by its name, and its progress as a number that grows."""

    make: Callable[..., Any]
    settings: Callable[[str], Any]
    progress: Callable[[Any], int]


def _producer(**settings: Any) -> _Kind:
    return _Kind(Producer, lambda name: ProducerSettings(pause_s=PAUSE_S, **settings), lambda made: made.acknowledged)


def _transactional(version: int) -> _Kind:
    def settings(name: str) -> TransactionalSettings:
        return TransactionalSettings(
            pause_s=PAUSE_S, transactional_id=name, transaction_version=version, transaction_timeout_s=6.0
        )

    return _Kind(TransactionalProducer, settings, lambda made: made.outcomes["committed"])


KINDS: dict[str, _Kind] = {
    "idempotent": _producer(),
    "one-in-flight": _producer(max_in_flight=1),
    "plain": _producer(is_idempotent=False),
    "leader-only": _producer(is_idempotent=False, acks=1),
    "transactional": _transactional(2),
    "old-transactional": _transactional(0),
}


class _Client(NamedTuple):
    name: str
    kind: _Kind
    made: Any


class Load:
    """The clients of a run, as the settings name them, and a reader at each isolation level."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._history: list[Event] = []
        self._reads: Counter[str] = Counter()
        topics = world.settings.topics
        self._places = _list_places(topic for topic in topics if not topic.is_unclean)
        self._unclean = _list_places(topic for topic in topics if topic.is_unclean)
        self._clients = [
            self._start(f"{name}-{number}", KINDS[name], self._places)
            for number, name in enumerate(world.settings.clients)
        ]
        if self._unclean:
            self._clients.append(self._start("careless-0", KINDS["idempotent"], self._unclean))
        for isolation in ISOLATIONS:
            name = f"reader-{isolation}"
            kind = _reader(isolation, lambda name=name: self._reads[name])
            self._clients.append(self._start(name, kind, self._places))
        self._before: dict[str, int] = {}
        self._is_over = False

    def _start(self, name: str, kind: _Kind, places: Sequence[HistoryPartition]) -> _Client:
        world = self._world
        clock, network = world.new_host(name)
        rng = Random(f"{world.seed} {name}")
        made = kind.make(clock, network, rng, world.bootstrap, self._note, f"{name}.0", kind.settings(name), places)
        made.start()
        return _Client(name, kind, made)

    def _note(self, event: Event) -> None:
        self._history.append(event)
        if isinstance(event, Read):
            self._reads[event.client.rpartition(".")[0]] += 1

    # Progress

    def list_unserved(self) -> list[str]:
        """Return a sentence for each client that has made no progress since this was asked first."""
        if not self._before:
            self._before = {client.name: client.kind.progress(client.made) for client in self._clients}
        return [
            f"{client.name} makes no progress"
            for client in self._clients
            if client.kind.progress(client.made) <= self._before[client.name]
        ]

    # The end

    def end(self) -> Deferred[None]:
        """End all clients, then read everything again; fires when that is done."""
        return Deferred.fromCoroutine(self._end())

    async def _end(self) -> None:
        writers = [client.made for client in self._clients if not isinstance(client.made, Consumer)]
        for ending in [writer.stop() for writer in writers]:
            await ending
        for client in self._clients:
            if isinstance(client.made, Consumer):
                await client.made.finish(READ_S)
        for isolation in ISOLATIONS:
            reader = self._start(f"last-{isolation}", _reader(isolation, lambda: 0), self._places)
            self._clients.append(reader)
            await reader.made.finish(READ_S)

    def judge(self) -> None:
        """Report what the clients should not have seen."""
        world = self._world
        for client in self._clients:
            for failure in client.made.process.failures:
                world.fail(failure, f"the client {client.name} failed")
        for sentence in judge(self._history, set(world.monitor.lossy.values()), self._list_resending()):
            world.report(sentence)

    def _list_resending(self) -> set[str]:
        """Return the producers that took a new epoch with several batches in flight.

        A replica that has loaded its producers from a snapshot knows the last batch of each only, as in Kafka: it takes an earlier one
        that is repeated for one out of order, and the producer sends it again as a new one.
        """
        names = set()
        for client in self._clients:
            if isinstance(client.made, Producer) and client.made.bumps:
                self._world.counts.happen("a producer takes a new epoch")
                if client.kind.settings(client.name).max_in_flight > 1:
                    names.add(f"{client.name}.0")
        return names


def _reader(isolation: str, progress: Callable[[], int]) -> _Kind:
    return _Kind(Consumer, lambda name: ConsumerSettings(isolation=isolation, max_wait_s=0.5), lambda made: progress())


def _list_places(topics: Any) -> list[HistoryPartition]:
    return [HistoryPartition(topic.name, index) for topic in topics for index in range(topic.partitions)]
