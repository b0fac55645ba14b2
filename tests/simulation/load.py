"""The clients of a run, and the verdict on what they saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.history.events import ISOLATIONS, READ_COMMITTED, READ_UNCOMMITTED, Event, HistoryPartition, Read
from tests.simulation.clients.consumer import Consumer
from tests.simulation.clients.copier import Copier
from tests.simulation.clients.member import Member
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.settings import (
    ConsumerSettings,
    CopierSettings,
    MemberSettings,
    ProducerSettings,
    TransactionalSettings,
)
from tests.simulation.clients.transactional_producer import TransactionalProducer
from tests.simulation.settings import COPIES, TopicSettings
from tests.simulation.verdict import TRANSACTION_TOPIC, has_lost, judge

if TYPE_CHECKING:
    from tests.simulation.world import World

PAUSE_S = (0.05, 0.5)
READ_S = 25.0
"""Time that a reader has to reach the end of what it reads."""
MEMBERS = 2


class _Kind(NamedTuple):
    """A kind of client: its class, its settings by its name, its progress as a number that grows, and what else it takes.

    ``size`` clients are started together. ``group`` is that of members. ``isolation`` is that at which they read.
    """

    make: Callable[..., Any]
    settings: Callable[[str], Any]
    progress: Callable[[Any], int]
    further: Callable[[Load], list[Any]]
    size: int = 1
    group: str = ""
    isolation: str = READ_UNCOMMITTED


def _producer(**settings: Any) -> _Kind:
    return _Kind(
        Producer,
        lambda name: ProducerSettings(pause_s=PAUSE_S, **settings),
        lambda made: int(made.acknowledged),
        lambda load: [load.places],
    )


def _transactional_settings(name: str, version: int) -> TransactionalSettings:
    return TransactionalSettings(
        pause_s=PAUSE_S, transactional_id=name, transaction_version=version, transaction_timeout_s=6.0
    )


def _transactional(version: int) -> _Kind:
    return _Kind(
        TransactionalProducer,
        partial(_transactional_settings, version=version),
        lambda made: int(made.outcomes["committed"]),
        lambda load: [load.places],
    )


def _member_settings(group: str, protocol: str, isolation: str = READ_UNCOMMITTED) -> MemberSettings:
    return MemberSettings(group=group, protocol=protocol, isolation=isolation, max_wait_s=0.5, stay_s=(5.0, 20.0))


def _members(protocol: str) -> _Kind:
    group = f"{protocol}-group"
    return _Kind(
        Member,
        lambda name: _member_settings(group, protocol),
        lambda made: int(made.commits),
        lambda load: [load.topics],
        MEMBERS,
        group,
    )


def _copiers(protocol: str, version: int) -> _Kind:
    def settings(name: str) -> CopierSettings:
        member = _member_settings("copiers", protocol, READ_COMMITTED)
        return CopierSettings(member=member, producer=_transactional_settings(name, version))

    return _Kind(
        Copier,
        settings,
        lambda made: int(made.outcomes["committed"]),
        lambda load: [load.topics, [HistoryPartition(COPIES, 0)]],
        MEMBERS,
        "copiers",
        READ_COMMITTED,
    )


KINDS: dict[str, _Kind] = {
    "idempotent": _producer(),
    "one-in-flight": _producer(max_in_flight=1),
    "plain": _producer(is_idempotent=False),
    "leader-only": _producer(is_idempotent=False, acks=1),
    "transactional": _transactional(2),
    "old-transactional": _transactional(0),
    "classic-members": _members("classic"),
    "consumer-members": _members("consumer"),
    "copiers": _copiers("consumer", 2),
    "old-copiers": _copiers("classic", 0),
}
"""The kinds of clients by the names that the settings use."""


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
        self._before: dict[str, int] = {}
        topics = world.settings.topics
        shared = [topic for topic in topics if not topic.is_unclean and topic.name != COPIES]
        self.topics = [topic.name for topic in shared]
        self.places = list(_list_places(shared))
        self._all_places = list(_list_places(topic for topic in topics if not topic.is_unclean))
        self._clients: list[_Client] = []
        kinds = [(name, KINDS[name]) for name in world.settings.clients for _ in range(KINDS[name].size)]
        for number, (name, kind) in enumerate(kinds):
            self._start(f"{name}-{number}", kind, kind.further(self))
        if unclean := list(_list_places(topic for topic in topics if topic.is_unclean)):
            self._start("careless", KINDS["idempotent"], [unclean])
        for isolation in ISOLATIONS:
            self._start_reader("reader", isolation)

    def _start_reader(self, name: str, isolation: str) -> Consumer:
        full_name = f"{name}-{isolation}"
        settings = ConsumerSettings(isolation=isolation, max_wait_s=0.5)
        kind = _Kind(
            Consumer,
            lambda _: settings,
            lambda _: self._reads[full_name],
            lambda load: [load._all_places],
            isolation=isolation,
        )
        consumer: Consumer = self._start(full_name, kind, kind.further(self))
        consumer.is_current = self._is_current
        return consumer

    def _start(self, name: str, kind: _Kind, further: Sequence[Any]) -> Any:
        world = self._world
        clock, network = world.new_host(name)
        rng = Random(f"{world.seed} {name}")
        made = kind.make(clock, network, rng, world.bootstrap, self._note, f"{name}.0", kind.settings(name), *further)
        made.process.is_coordinator = self._is_coordinator
        made.start()
        self._clients.append(_Client(name, kind, made))
        return made

    def _is_current(self, place: HistoryPartition, leader_epoch: int) -> bool:
        stored = self._world.stored.partitions.get(place)
        return stored is not None and stored.state is not None and stored.state.leader_epoch == leader_epoch

    def _is_coordinator(self, group: str, node: int) -> bool:
        leader = self._world.group_coordinator(group)
        if leader != node:
            self._world.counts.happen("a replaced coordinator answers")
        return leader == node

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
            if client.kind.progress(client.made) <= self._before[client.name] and not self._may_wait_for_ever(client)
        ]

    def _may_wait_for_ever(self, client: _Client) -> bool:
        """Readers of committed records cannot pass a transaction that the coordinators have lost."""
        return client.kind.isolation == READ_COMMITTED and self._has_lost_transactions()

    def _has_lost_transactions(self) -> bool:
        return has_lost(self._world.monitor.lossy.values(), TRANSACTION_TOPIC)

    def _list_groups_with_ends(self) -> list[str]:
        """List the groups whose committed offsets become stable: those of a lost transaction never do, as in Kafka."""
        groups = [client.kind.group for client in self._clients if not self._may_wait_for_ever(client)]
        return [group for group in dict.fromkeys(groups) if group]

    # The end

    def end(self) -> Deferred[None]:
        """End all clients, then read everything again; fires when that is done."""
        return Deferred.fromCoroutine(self._end())

    async def _end(self) -> None:
        readers = [client.made for client in self._clients if isinstance(client.made, Consumer)]
        members = [client.made for client in self._clients if client.kind.group]
        writers = [client.made for client in self._clients if not client.kind.group and client.made not in readers]
        for clients in (writers, members):
            for ending in [client.stop() for client in clients]:
                await ending
        for reader in readers:
            await reader.finish(READ_S)
        groups = self._list_groups_with_ends()
        for isolation in ISOLATIONS:
            last = self._start_reader("last", isolation)
            # The reader of committed records is not judged where a transaction was lost, so the other one fetches the offsets.
            await last.finish(READ_S, groups if isolation == READ_UNCOMMITTED else ())

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


def _list_places(topics: Any) -> Iterator[HistoryPartition]:
    topic: TopicSettings
    for topic in topics:
        for index in range(topic.partitions):
            yield HistoryPartition(topic.name, index)
