"""What a failing disk takes with it, and what it leaves alone."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.new_partitions import DURABLE_AFTER_S
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import outcome, refusal
from tests.kafkacompat.partitions.node import Node, code_of, names_of, topic


def test_a_failed_disk_takes_only_its_own_partitions_offline() -> None:
    node = Node("/a", "/b")
    node.open(topic("t", 4))
    broken, sibling = node.replicas.find("t", 0), node.replicas.find("t", 2)
    node.files.fail_on("append", errno.EIO)
    with pytest.raises(KafkaError) as caught:
        broken.append(node.batch(), node.now_ms)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (broken.closed, sibling.closed) == (True, True)
    assert code_of(node.replicas, "t", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(node.replicas, b"t" * 16, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.append(node.replicas.find("t", 1)).base_offset == 0
    assert [directory.storage.path for directory, _ in node.replicas.logs_by_directory()] == ["/b"]


def deleting(node: Node) -> object:
    return node.replicas.delete_partitions(topic())


def checkpointing(node: Node) -> object:
    partition = node.replicas.find("t", 0)
    return partition.disk.run(node.directories[0].storage.checkpoint, [partition.log])


def deleting_records(node: Node) -> object:
    return node.replicas.delete_records(node.replicas.find("t", 0), 1)


def rolling(node: Node) -> None:
    node.replicas.find("t", 0).roll()


def moving(node: Node) -> object:
    return node.replicas.move("t", 1, "/a")


def making(node: Node) -> object:
    making = node.replicas.open_partitions(topic("u", 1, b"u" * 16))
    node.work()
    node.clock.advance(DURABLE_AFTER_S)
    return making


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize(
    ("operation", "work"),
    [
        ("sync_directory", deleting),
        ("sync", checkpointing),
        ("sync_directory", checkpointing),
        ("sync", deleting_records),
        ("sync", rolling),
        ("sync", moving),
        ("sync", making),
        ("sync_directory", making),
    ],
)
def test_a_failed_sync_takes_its_directory_offline_whatever_it_was_for(
    operation: str, work: Callable[[Node], object], error: int
) -> None:
    node = Node("/a", "/b")
    node.open(topic("t", 2))
    for partition in node.replicas:
        node.append(partition)
    done = work(node)
    node.files.fail_on(operation, error)
    node.work()
    if isinstance(done, Deferred):
        done.addErrback(lambda _: None)
    assert [directory.offline for directory in node.directories] == [True, False]


def test_a_log_whose_recovery_cannot_be_synced_takes_its_directory_offline() -> None:
    node = Node("/a", "/b")
    node.open(topic())
    node.append(node.replicas.find("t", 0))
    node.files.fail_on("append", errno.EIO, after_bytes=30)
    node.files.fail_on("truncate", errno.EIO)
    with pytest.raises(KafkaError):
        node.append(node.replicas.find("t", 0))
    node.files.crash(lose_unsynced=False)
    node = node.next_process()
    node.files.fail_on("sync", errno.ENOSPC)
    node.open(topic())
    assert [directory.offline for directory in node.directories] == [True, False]


def test_all_in_line_are_refused_once_when_the_disk_fails_under_the_first() -> None:
    node = Node()
    node.open(topic())
    partition = node.replicas.find("t", 0)
    assert partition.pause()
    in_line = [partition.append(node.batch(), node.now_ms) for _ in range(3)]
    node.files.fail_on("append", errno.EIO)
    partition.resume()
    assert [refusal(append) for append in in_line if isinstance(append, Deferred)] == [
        ErrorCode.KAFKA_STORAGE_ERROR
    ] * 3
    assert node.directories[0].offline


def test_a_full_disk_refuses_a_batch_and_nothing_more() -> None:
    node = Node()
    node.open(topic())
    node.files.fail_on("append", errno.ENOSPC)
    with pytest.raises(KafkaError) as caught:
        node.append(node.replicas.find("t", 0))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    node.directories[0].space.measure_if_needed()
    node.work()
    assert node.append(node.replicas.find("t", 0)).base_offset == 0


def test_new_partitions_go_to_a_directory_that_works_until_there_is_none() -> None:
    node = Node("/a", "/b")
    node.open(topic("t", 2))
    node.replicas.take_directory_offline(node.directories[0], OSError("gone"))
    node.open(topic("u", 2, b"u" * 16))
    assert [name for name in node.names("b") if name.startswith("u-")] == ["u-0", "u-1"]
    node.replicas.take_directory_offline(node.directories[1], OSError("gone"))
    node.open(topic("w", 1, b"w" * 16))
    assert code_of(node.replicas, "w", 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_that_fails_while_a_partition_is_opened_has_it_offline() -> None:
    node = Node()
    opening = node.replicas.open_partitions(topic())
    node.replicas.take_directory_offline(node.directories[0], OSError("gone"))
    node.work()
    outcome(opening)
    assert code_of(node.replicas, "t", 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_deleting_what_lies_in_a_failed_directory_touches_no_file() -> None:
    node = Node()
    node.open(topic())
    node.replicas.take_directory_offline(node.directories[0], OSError("gone"))
    outcome(node.replicas.delete_partitions(topic()))
    node.work()
    assert [name for name in node.names("a") if name.startswith("t-")] == ["t-0"]
    assert code_of(node.replicas, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_disk_that_fails_while_a_partition_is_opened_leaves_it_offline() -> None:
    node = Node()
    node.files.fail_on("open", errno.EIO)
    node.open(topic("t", 2))
    assert code_of(node.replicas, "t", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert names_of(node.replicas) == [("t", 1)]
