"""A coordinator leads the partitions that the controller opens, and forgets the topics that it deletes."""

from __future__ import annotations

from kafkacompat.coordination.partition_events import CoordinatorEvents
from kafkacompat.coordinators import group_partition_events
from kafkacompat.groups.commits import OffsetToCommit
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.groups.stored_offsets import StoredOffsets
from kafkacompat.metadata.image import PartitionImage, TopicImage
from kafkacompat.wire.errors import ErrorCode
from tests.fakes.memory_store import MemoryStore
from tests.fakes.partition_events import RecordingEvents
from tests.kafkacompat.groups.support import GROUP, TOPIC_ID, World, is_waiting, now


def topic(name: str, partitions: int = 4) -> TopicImage:
    led = (PartitionImage(number, 1, 0, (1,), (1,), 0) for number in range(partitions))
    return TopicImage(name, TOPIC_ID, tuple(led))


def a_world() -> tuple[World, RecordingEvents, CoordinatorEvents]:
    """Return a coordinator that leads no partition yet."""
    world, replicas = World(), RecordingEvents()
    for partition in range(4):
        world.coordinator.on_resignation(partition)
    stored = StoredOffsets(MemoryStore(), 4096)
    return world, replicas, group_partition_events(replicas, lambda: world.coordinator, lambda: stored)


def test_with_a_topic_its_offsets_in_the_store_go() -> None:
    store = MemoryStore()
    stored = StoredOffsets(store, 4096)
    world = World()
    events = group_partition_events(RecordingEvents(), lambda: world.coordinator, lambda: stored)
    now(stored.commit("g", [OffsetToCommit(name, TOPIC_ID, 0, 1, -1, None) for name in ("t", "u")]))
    events.delete_partitions(topic("t"))
    assert list(store.entries) == ["/consumers/g/offsets/u/0"]


def test_groups_can_be_used_once_the_offsets_topic_is_open() -> None:
    world, replicas, events = a_world()
    replicas.hold = True
    opened = events.open_partitions(topic(OFFSETS_TOPIC))
    assert is_waiting(opened)
    assert now(world.commit()) == [ErrorCode.NOT_COORDINATOR]
    replicas.waiting.pop().callback(None)
    assert opened.called
    assert now(world.commit()) == [ErrorCode.NONE]


def test_more_partitions_of_it_are_led_too() -> None:
    world, _, events = a_world()
    events.open_partitions(topic(OFFSETS_TOPIC, 1))
    events.open_partitions(topic(OFFSETS_TOPIC, 4))
    assert {now(world.commit(group=f"g{number}"))[0] for number in range(20)} == {ErrorCode.NONE}


def test_a_partition_that_cannot_be_opened_is_not_led() -> None:
    world, replicas, events = a_world()
    replicas.broken.add(OFFSETS_TOPIC)
    failed: list[object] = []
    events.open_partitions(topic(OFFSETS_TOPIC)).addErrback(failed.append)
    assert len(failed) == 1
    assert now(world.commit()) == [ErrorCode.NOT_COORDINATOR]


def test_with_the_offsets_topic_its_groups_go() -> None:
    world, replicas, events = a_world()
    events.open_partitions(topic(OFFSETS_TOPIC))
    (member_id,) = world.stable()
    joining = world.join(member_id)
    events.delete_partitions(topic(OFFSETS_TOPIC))
    assert now(joining).generation_id == 2
    assert world.heartbeat(member_id, 2) is ErrorCode.NOT_COORDINATOR
    assert replicas.told == [("open", OFFSETS_TOPIC), ("delete", OFFSETS_TOPIC)]


def test_with_any_other_topic_its_offsets_go() -> None:
    world, replicas, events = a_world()
    events.open_partitions(topic(OFFSETS_TOPIC))
    events.open_partitions(topic("t"))
    world.commit(group=GROUP)
    events.delete_partitions(topic("t"))
    world.turn(3)
    assert world.committed() == -1
    assert replicas.told[1:] == [("open", "t"), ("delete", "t")]


def test_configurations_are_passed_on() -> None:
    _, replicas, events = a_world()
    events.configs_changed(topic("t"))
    assert replicas.told == [("configure", "t")]
