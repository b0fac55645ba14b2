"""A coordinator leads the partitions that the controller opens or names, and forgets the topics that it deletes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from kafkacompat.config import BrokerConfig
from kafkacompat.coordination.partition_events import CoordinatorEvents, CoordinatorRoles, TopicRoles
from kafkacompat.coordinators import Coordinators
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.transactions.topic import TRANSACTION_TOPIC
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.groups.support import GROUP, TOPIC_ID, TurningClock, World, is_waiting, take_response

if TYPE_CHECKING:
    from kafkacompat.cluster.assigned_replicas import RoleReceiver


def make_topic(name: str, partitions: int = 4) -> TopicImage:
    led = (PartitionImage(number, 1, 0, (1,), (1,), 0) for number in range(partitions))
    return TopicImage(name, TOPIC_ID, tuple(led))


def build_coordinators(replicas: RecordingEvents, store: MemoryStore | None = None) -> Coordinators:
    anything: Any = None
    partitions: Any = replicas
    config, store = BrokerConfig({"node.id": "1"}), store or MemoryStore()
    return Coordinators(
        TurningClock(),
        config,
        partitions,
        anything,
        anything,
        store,
        random.Random(1),
        readable_by_old_kafka=False,
    )


def a_world() -> tuple[World, RecordingEvents, CoordinatorEvents]:
    """Return a coordinator that leads no partition yet."""
    world, replicas = World(), RecordingEvents()
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    coordinators: Any = build_coordinators(replicas)
    coordinators.groups = world.coordinator
    return world, replicas, coordinators.events


def test_with_a_topic_its_offsets_in_the_store_go() -> None:
    store = MemoryStore()
    coordinators: Any = build_coordinators(RecordingEvents(), store)
    coordinators.groups = World().coordinator
    stored = coordinators.stored_offsets
    take_response(stored.commit("g", [OffsetToCommit(name, TOPIC_ID, 0, 1, -1, None) for name in ("t", "u")]))
    coordinators.events.delete_partitions(make_topic("t"))
    assert list(store.entries) == ["/consumers/g/offsets/u/0"]


def test_each_coordinator_learns_of_its_own_topic_only() -> None:
    calls: list[object] = []
    roles = CoordinatorRoles(
        {
            OFFSETS_TOPIC: TopicRoles(lambda partition: calls.append(("lead", partition.partition)), calls.append),
            TRANSACTION_TOPIC: TopicRoles(
                lambda partition: calls.append((partition.leader_epoch, partition.partition)), calls.append
            ),
        },
        lambda topic: calls.append(topic.name),
    )
    receiver: RoleReceiver = roles
    receiver.lead(OFFSETS_TOPIC, make_topic(OFFSETS_TOPIC).partitions[3])
    receiver.lead(TRANSACTION_TOPIC, make_topic(TRANSACTION_TOPIC).partitions[1]._replace(leader_epoch=7))
    receiver.lead("t", make_topic("t").partitions[2])
    receiver.resign(OFFSETS_TOPIC, 3)
    receiver.resign("t", 2)
    receiver.forget(make_topic("t"))
    assert calls == [("lead", 3), (7, 1), 3, "t"]


def test_the_transaction_coordinator_leads_in_the_partitions_epoch() -> None:
    calls: list[tuple[int, ...]] = []

    class Recorder:
        def on_election(self, partition: int, leader_epoch: int) -> None:
            calls.append((partition, leader_epoch))

        def on_resignation(self, partition: int) -> None:
            calls.append((partition,))

    coordinators: Any = build_coordinators(RecordingEvents())
    coordinators.transactions = Recorder()
    coordinators.roles.lead(TRANSACTION_TOPIC, make_topic(TRANSACTION_TOPIC).partitions[1]._replace(leader_epoch=7))
    coordinators.roles.resign(TRANSACTION_TOPIC, 1)
    assert calls == [(1, 7), (1,)]


def test_groups_can_be_used_once_the_offsets_topic_is_open() -> None:
    world, replicas, events = a_world()
    replicas.hold = True
    opened = events.open_partitions(make_topic(OFFSETS_TOPIC))
    assert is_waiting(opened)
    assert take_response(world.commit()) == [ErrorCode.NOT_COORDINATOR]
    replicas.waiting.pop().callback(None)
    assert opened.called
    assert take_response(world.commit()) == [ErrorCode.NONE]


def test_more_partitions_of_it_are_led_too() -> None:
    world, _, events = a_world()
    events.open_partitions(make_topic(OFFSETS_TOPIC, 1))
    events.open_partitions(make_topic(OFFSETS_TOPIC, 4))
    assert {take_response(world.commit(group=f"g{number}"))[0] for number in range(20)} == {ErrorCode.NONE}


def test_a_partition_that_cannot_be_opened_is_not_led() -> None:
    world, replicas, events = a_world()
    replicas.broken.add(OFFSETS_TOPIC)
    failed: list[object] = []
    events.open_partitions(make_topic(OFFSETS_TOPIC)).addErrback(failed.append)
    assert len(failed) == 1
    assert take_response(world.commit()) == [ErrorCode.NOT_COORDINATOR]


def test_with_the_offsets_topic_its_groups_go() -> None:
    world, replicas, events = a_world()
    events.open_partitions(make_topic(OFFSETS_TOPIC))
    (member_id,) = world.stable()
    joining = world.join(member_id)
    events.delete_partitions(make_topic(OFFSETS_TOPIC))
    assert take_response(joining).generation_id == 2
    assert world.heartbeat(member_id, 2) is ErrorCode.NOT_COORDINATOR
    assert replicas.notifications == [("open", OFFSETS_TOPIC), ("delete", OFFSETS_TOPIC)]


def test_with_any_other_topic_its_offsets_go() -> None:
    world, replicas, events = a_world()
    events.open_partitions(make_topic(OFFSETS_TOPIC))
    events.open_partitions(make_topic("t"))
    world.commit(group=GROUP)
    events.delete_partitions(make_topic("t"))
    world.turn(3)
    assert world.committed() == -1
    assert replicas.notifications[1:] == [("open", "t"), ("delete", "t")]


def test_configurations_are_passed_on() -> None:
    _, replicas, events = a_world()
    events.configs_changed(make_topic("t"))
    assert replicas.notifications == [("configure", "t")]
