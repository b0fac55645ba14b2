"""Many partitions on their way to one directory: they take turns, so that nobody else waits for all of them."""

from __future__ import annotations

import pytest

from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.upkeep.moves import SMALL

pytestmark = pytest.mark.usefixtures("small_steps")

COUNT = 4


def node_with_partitions() -> Node:
    """A node with partitions in /a, and /b for them to go to."""
    node = Node("/a", "/b", config=SMALL)
    for index in range(COUNT):
        node.replicas.directories.note_wish(("t", index), node.directories[0])
    node.open(topic(partitions=COUNT))
    for partition in node.replicas:
        for _ in range(20):
            node.append(partition)
    return node


def list_homes(node: Node) -> set[str]:
    homes = (node.replicas.directories.find_home(("t", index)) for index in range(COUNT))
    return {"nowhere" if directory is None else directory.path for directory in homes}


def work_off(node: Node) -> int:
    """Let the disks do the work that waits now, but not the work that follows from it; return how much waited for /b."""
    waiting = [len(disk.waiting) for disk in node.disks]
    for disk, count in zip(node.disks, waiting, strict=True):
        for _ in range(count):
            disk.waiting.popleft()()
    return waiting[1]


def test_one_step_of_one_move_waits_for_the_disk_at_a_time() -> None:
    node = node_with_partitions()
    begun = [node.replicas.move("t", index, "/b") for index in range(COUNT)]
    while not all(map(has_fired, begun)):
        assert work_off(node) == 1
    assert list_homes(node) == {"/a"}
    while list(node.moves):
        # Beside a step there may be the last word of the move before.
        assert work_off(node) <= 2
    assert list_homes(node) == {"/b"}


def test_a_move_that_waits_for_its_turn_is_given_up_without_it() -> None:
    node = node_with_partitions()
    first, second, third = (node.replicas.move("t", index, "/b") for index in range(3))
    back = node.replicas.move("t", 1, "/a")
    assert refusal(second) == ErrorCode.KAFKA_STORAGE_ERROR
    work_off(node)
    assert has_fired(back) and not has_fired(third)
    assert len(list(node.moves)) == 2
    node.work()
    outcome(first)
    assert [name for name in node.names("/b") if name.startswith("t-")] == ["t-0", "t-2"]


def test_a_stopping_broker_does_not_wait_for_moves() -> None:
    node = node_with_partitions()
    begun = [node.replicas.move("t", index, "/b") for index in range(COUNT)]
    stopped = node.moves.stop()
    assert not has_fired(stopped)
    assert [refusal(move) for move in begun[1:]] == [ErrorCode.KAFKA_STORAGE_ERROR] * (COUNT - 1)
    work_off(node)
    outcome(begun[0])
    assert outcome(stopped) is None


def test_a_directory_that_fails_ends_any_number_of_moves(caplog: pytest.LogCaptureFixture) -> None:
    count = 500
    node = Node("/a", "/b", config=SMALL)
    for index in range(count):
        node.replicas.directories.note_wish(("t", index), node.directories[0])
    node.open(topic(partitions=count))
    begun = [node.replicas.move("t", index, "/b") for index in range(count)]
    node.replicas.take_directory_offline(node.directories[1], OSError("gone"))
    node.work()
    assert {refusal(move) for move in begun[1:]} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert list(node.moves) == []
    assert "RecursionError" not in caplog.text
    assert len(list(node.replicas)) == count
