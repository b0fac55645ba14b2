"""The kinds of administrative work as a table, as in faults.py: each is done by an administrator's client."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.errors import ErrorCode
from tests.simulation.clients.admin import PREFERRED, Admin
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.settings import AdminSettings, ProducerSettings
from tests.simulation.settings import Settings, TopicSettings
from tests.simulation.world import World

Arguments = dict[str, Any]

UNCLEAN = 1
EXTRA_TOPICS = ("extra-1", "extra-2")
"""Topics that come and go, apart from those of the clients."""
WRITE_S = 3.0


class Administrator:
    """Does the work of a plan, and counts what comes of it."""

    def __init__(self, world: World) -> None:
        clock, network = world.new_host("administrator")
        rng = Random(f"{world.seed} administrator")
        self._world = world
        self._admin = Admin(clock, network, rng, world.bootstrap, lambda event: None, "administrator", AdminSettings())
        self._admin.start()

    def create_topic(self, topic: TopicSettings) -> None:
        """Create a topic of the clients."""
        self._count("create a topic of the clients", _create_topic(self._admin, topic))

    def do(self, kind: str, arguments: Arguments) -> bool:
        """Do work of the table; return whether it applies."""
        work = WORK[kind].begin(self._world, self._admin, **arguments)
        if work is not None:
            self._count(kind, work)
        return work is not None

    def _count(self, kind: str, work: Deferred[ErrorCode]) -> None:
        def count(code: ErrorCode) -> None:
            self._world.counts.happen(f"{kind}: {'done' if code is ErrorCode.NONE else code.name}")

        work.addCallback(count).addErrback(self._world.fail, kind)

    def stop(self) -> None:
        """End the client."""
        self._admin.stop()


class Work(NamedTuple):
    """A kind of work; ``weight`` is how often it is drawn beside the others."""

    weight: int
    draw: Callable[[Settings, Random], Arguments]
    begin: Callable[..., Deferred[ErrorCode] | None]


def _create_topic(admin: Admin, topic: TopicSettings) -> Deferred[ErrorCode]:
    properties = {"segment.ms": str(topic.segment_ms)}
    if topic.is_unclean:
        properties["unclean.leader.election.enable"] = "true"
    return admin.create_topic(topic.name, topic.partitions, topic.replicas, properties)


def _draw_extra(settings: Settings, rng: Random) -> Arguments:
    return {"topic": rng.choice(EXTRA_TOPICS)}


def _draw_place(settings: Settings, rng: Random) -> Arguments:
    topic = rng.choice(settings.topics)
    return {"topic": topic.name, "partition": rng.randrange(topic.partitions)}


def _draw_create(settings: Settings, rng: Random) -> Arguments:
    return {**_draw_extra(settings, rng), "partitions": rng.choice((1, 3)), "replicas": rng.choice((1, 2, 3))}


def _create(world: World, admin: Admin, topic: str, partitions: int, replicas: int) -> Deferred[ErrorCode]:
    return _create_topic(admin, TopicSettings(topic, partitions, replicas))


def _delete(world: World, admin: Admin, topic: str) -> Deferred[ErrorCode]:
    return admin.delete_topic(topic)


def _grow(world: World, admin: Admin, topic: str, count: int) -> Deferred[ErrorCode]:
    return admin.grow_topic(topic, count)


def _write(world: World, admin: Admin, topic: str) -> Deferred[ErrorCode] | None:
    """Append records to partition 0 for a while, without any promise."""
    if (topic, 0) not in world.stored.partitions:
        return None
    name = f"scribbler-{world.timeline.calls}"
    clock, network = world.new_host(name)
    settings = ProducerSettings(is_idempotent=False, acks=1)
    place = [HistoryPartition(topic, 0)]
    producer = Producer(
        clock, network, Random(f"{world.seed} {name}"), world.bootstrap, lambda _: None, name, settings, place
    )
    producer.start()
    world.later(WRITE_S, producer.kill)
    done: Deferred[ErrorCode] = Deferred()
    done.callback(ErrorCode.NONE)
    return done


def _draw_reassign(settings: Settings, rng: Random) -> Arguments:
    place = _draw_place(settings, rng)
    replicas = next(topic.replicas for topic in settings.topics if topic.name == place["topic"])
    return {**place, "replicas": rng.sample(settings.nodes, rng.choice((replicas, replicas, min(3, replicas + 1))))}


def _reassign(
    world: World, admin: Admin, topic: str, partition: int, replicas: list[int] | None = None
) -> Deferred[ErrorCode]:
    return admin.reassign(HistoryPartition(topic, partition), replicas)


def _elect_preferred(world: World, admin: Admin, topic: str, partition: int) -> Deferred[ErrorCode]:
    return admin.elect(HistoryPartition(topic, partition), PREFERRED)


def _elect_unclean(world: World, admin: Admin, partition: int) -> Deferred[ErrorCode] | None:
    topic = next((topic.name for topic in world.settings.topics if topic.is_unclean), None)
    return None if topic is None else admin.elect(HistoryPartition(topic, partition), UNCLEAN)


def _draw_config(settings: Settings, rng: Random) -> Arguments:
    name, value = rng.choice(
        (
            ("min.insync.replicas", str(settings.min_insync_replicas)),
            ("min.insync.replicas", "1"),
            ("segment.ms", "2000"),
            ("flush.messages", "3"),
            ("retention.ms", "604800000"),
        )
    )
    return {"topic": rng.choice(settings.topics).name, "name": name, "value": value}


def _configure(world: World, admin: Admin, topic: str, name: str, value: str) -> Deferred[ErrorCode]:
    return admin.alter_config(topic, name, value)


WORK: dict[str, Work] = {
    "create topic": Work(4, _draw_create, _create),
    "delete topic": Work(2, _draw_extra, _delete),
    "add partitions": Work(1, lambda s, r: {**_draw_extra(s, r), "count": r.choice((2, 4))}, _grow),
    "write": Work(3, _draw_extra, _write),
    "reassign": Work(4, _draw_reassign, _reassign),
    "cancel reassignment": Work(1, _draw_place, _reassign),
    "elect preferred": Work(3, _draw_place, _elect_preferred),
    "elect unclean": Work(1, lambda s, r: {"partition": 0}, _elect_unclean),
    "configure": Work(3, _draw_config, _configure),
}
