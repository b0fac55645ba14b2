"""All partitions of a broker: found, opened and deleted."""

from __future__ import annotations

import errno
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.partitions.directories import REMOVED_TOGETHER
from kafkacompat.partitions.new_partitions import DURABLE_AFTER_S
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.timers import UNDER_WAY
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.disk import ManualDisk
from tests.kafkacompat.metadata.deferreds import outcome, refusal
from tests.kafkacompat.partitions.node import EPOCH, Node, code_of, names_of, topic

OTHER_ID = b"o" * 16


def leave_unreadable(node: Node, folder: str) -> None:
    """A partition's folder that cannot be opened: whose it is cannot be read."""
    node.files.make_directory(folder)
    file = node.files.open(f"{folder}/partition.metadata", create=True)
    file.append([b"nonsense"], 8)
    file.close()


# Opening and finding


def test_a_partition_is_found_by_name_and_by_id() -> None:
    node = Node()
    node.open(topic("t", 2))
    partition = node.replicas.find("t", 1)
    assert (partition.topic, partition.index, partition.leader_epoch) == ("t", 1, EPOCH)
    assert node.replicas.find(b"t" * 16, 1) is partition
    assert names_of(node.replicas) == [("t", 0), ("t", 1)]


def test_what_is_not_there_is_unknown_by_name_and_by_id() -> None:
    node = Node()
    node.open(topic())
    assert code_of(node.replicas, "u", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(node.replicas, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(node.replicas, OTHER_ID, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of(node.replicas, b"t" * 16, 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("name", "index", "said"),
    [
        ("t", 1, "there is no partition t-1"),
        (b"t" * 16, 1, "there is no partition dHR0dHR0dHR0dHR0dHR0dA-1"),
        (b"u" * 16, 0, "there is no topic with the id dXV1dXV1dXV1dXV1dXV1dQ"),
    ],
)
def test_people_can_read_what_is_said_of_it(name: str | bytes, index: int, said: str) -> None:
    node = Node()
    node.open(topic())
    with pytest.raises(KafkaError) as caught:
        node.replicas.find(name, index)
    assert caught.value.detail == said


def test_opening_again_opens_only_what_is_new() -> None:
    node = Node()
    node.open(topic("t", 1))
    first = node.replicas.find("t", 0)
    node.open(topic("t", 2))
    assert node.replicas.find("t", 0) is first
    assert names_of(node.replicas) == [("t", 0), ("t", 1)]


def test_a_new_partition_takes_writes_before_it_is_on_the_disk() -> None:
    node = Node()
    ids: list[bool] = []
    opening = node.replicas.open_partitions(topic())
    opening.addCallback(lambda _: ids.append(node.files.exists("/a/t-0/partition.metadata")))
    node.work()
    node.clock.advance(DURABLE_AFTER_S)
    node.work()
    assert (ids, node.files.exists("/a/t-0/partition.metadata")) == ([False], True)
    node.files.crash()
    assert "t-0" in node.names("a")


def test_the_stop_ends_the_sync_of_new_partitions_and_hides_failures_of_closed_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = Node()
    node.make(topic("t", 3))
    node.clock.advance(DURABLE_AFTER_S)
    preparing = Deferred.fromCoroutine(node.replicas.prepare_to_close())
    node.work()
    assert preparing.called
    assert [node.files.exists(f"/a/t-{index}/partition.metadata") for index in range(3)] == [True, False, False]
    for partition in node.replicas:
        partition.log.close()
        partition.report_disk_failure(Failure(partition.log.state.offline_error()))
    assert "is taken offline" not in caplog.text
    node.replicas.open_partitions(topic("late"))
    node.work()
    assert not node.clock.getDelayedCalls()


def test_new_partitions_spread_and_old_ones_are_opened_where_they_are() -> None:
    node = Node("/a", "/b")
    node.open(topic("t", 3))
    assert [name for name in node.names("a") if name.startswith("t-")] == ["t-0", "t-2"]
    node.append(node.replicas.find("t", 1))
    again = node.restart(topic("t", 3))
    assert again.replicas.find("t", 1).log.log_end_offset == 1
    assert [name for name in again.names("b") if name.startswith("t-")] == ["t-1"]


def test_a_partition_that_cannot_be_opened_is_offline_alone() -> None:
    node = Node()
    leave_unreadable(node, "/a/t-1")
    node.open(topic("t", 3))
    assert names_of(node.replicas) == [("t", 0), ("t", 2)]
    assert code_of(node.replicas, "t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(node.replicas, b"t" * 16, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.append(node.replicas.find("t", 2)).base_offset == 0
    assert not node.directories[0].offline


def test_a_partition_that_opens_later_is_not_offline_any_more() -> None:
    node = Node()
    node.files.fail_on("open", errno.EIO)
    node.open(topic())
    node.open(topic())
    assert node.replicas.find(b"t" * 16, 0) is node.replicas.find("t", 0)
    node.replicas.delete_partitions(topic())
    # Neither offline nor there.
    assert code_of(node.replicas, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(node.replicas, b"t" * 16, 0) == ErrorCode.UNKNOWN_TOPIC_ID


# Deleting


def test_a_deleted_partition_is_refused_at_once_and_its_folder_is_out_of_the_way() -> None:
    node = Node()
    node.open(topic("t", 2))
    partition = node.replicas.find("t", 0)
    deleted = node.replicas.delete_partitions(topic("t", 2))
    assert partition.closed
    assert code_of(node.replicas, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(node.replicas, b"t" * 16, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    assert not deleted.called
    node.work()
    outcome(deleted)
    assert node.replicas.directories.find_home(("t", 0)) is None
    folders = [name for name in node.names("a") if name.startswith("t-")]
    assert len(folders) == 2
    assert all(name.endswith("-delete") for name in folders)


def test_an_append_in_line_learns_that_its_partition_was_deleted() -> None:
    node = Node(config=LogConfig(segment_bytes=len(Node().batch())))
    node.open(topic())
    partition = node.replicas.find("t", 0)
    node.append(partition)
    waiting = partition.append(node.batch(), node.now_ms)
    assert isinstance(waiting, Deferred)
    node.replicas.delete_partitions(topic())
    assert refusal(waiting) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_files_that_are_due_behind_the_stop_are_left_to_the_next_start() -> None:
    node = Node(config=LogConfig(file_delete_delay_ms=7000))
    node.open(topic())
    node.replicas.delete_partitions(topic())
    node.work()
    settling = Deferred.fromCoroutine(node.replicas.prepare_to_close())
    node.work()
    outcome(settling)
    node.directories[0].storage.close([])
    before = node.names("a")
    node.clock.advance(7)
    node.work()
    assert node.names("a") == before
    after = node.next_process()
    assert [name for name in after.names("a") if name.startswith("t-")] == []


def test_files_of_a_deleted_partition_are_removed_after_file_delete_delay_ms() -> None:
    node = Node(config=LogConfig(file_delete_delay_ms=7000))
    node.open(topic())
    node.replicas.delete_partitions(topic())
    node.work()
    node.clock.advance(6)
    node.work()
    assert any(name.endswith("-delete") for name in node.names("a"))
    node.clock.advance(1)
    node.work()
    assert not any(name.startswith("t-") for name in node.names("a"))
    assert node.files.open_handles == 0


def test_files_that_cannot_be_removed_are_left_to_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.open(topic())
    node.replicas.delete_partitions(topic())
    node.work()
    name = next(name for name in node.names("a") if name.endswith("-delete"))
    node.files.make_directory(f"/a/{name}/in the way")
    node.clock.advance(60)
    node.work()
    assert "deleting files failed" in caplog.text
    assert not node.directories[0].offline


def test_a_topic_of_the_same_name_can_be_made_again() -> None:
    node = Node()
    node.open(topic())
    node.append(node.replicas.find("t", 0))
    node.replicas.delete_partitions(topic())
    # Asked in the same turn: the disk thread keeps the order.
    node.open(topic("t", 1, OTHER_ID))
    assert node.replicas.find("t", 0).log.log_end_offset == 0
    assert node.replicas.find(OTHER_ID, 0) is node.replicas.find("t", 0)
    assert code_of(node.replicas, b"t" * 16, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    node.clock.advance(60)
    node.work()
    assert node.append(node.replicas.find("t", 0)).base_offset == 0
    assert [name for name in node.names("a") if name.startswith("t-")] == ["t-0"]


def test_the_folder_of_an_unopened_partition_is_set_aside() -> None:
    node = Node()
    leave_unreadable(node, "/a/t-0")
    node.open(topic())
    node.replicas.delete_partitions(topic())
    node.work()
    assert [name.endswith("-stray") for name in node.names("a") if name.startswith("t-")] == [True]
    assert code_of(node.replicas, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(topic())
    assert node.replicas.find("t", 0).log.log_end_offset == 0


def test_an_unopened_partition_without_a_folder_is_deleted_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.files.fail_on("open", errno.EIO)
    node.open(topic())
    for name in node.names("a", "t-0"):
        node.files.remove(f"/a/t-0/{name}")
    node.files.remove_directory("/a/t-0")
    caplog.clear()
    deleted = node.replicas.delete_partitions(topic())
    node.work()
    outcome(deleted)
    assert "t-0" in caplog.text


# The rest


def test_a_changed_configuration_reaches_the_logs_of_its_topic_only() -> None:
    node = Node()
    node.open(topic("t", 2))
    node.open(topic("u", 1, b"u" * 16))
    node.configs = {"t": LogConfig(retention_ms=5), "u": LogConfig(retention_ms=6)}
    before = node.replicas.find("u", 0).log.config
    node.replicas.configs_changed(topic("t", 3))
    assert [node.replicas.find("t", index).log.config.retention_ms for index in range(2)] == [5, 5]
    assert node.replicas.find("u", 0).log.config is before


def test_logs_are_listed_by_the_directory_they_are_in() -> None:
    node = Node("/a", "/b")
    node.open(topic("t", 3))
    listed = {
        directory.storage.path: {log.partition for log in logs} for directory, logs in node.replicas.logs_by_directory()
    }
    assert listed == {"/a": {0, 2}, "/b": {1}}
    assert dict(Node("/c").replicas.logs_by_directory()).popitem()[1] == []


def test_waking_fetches_reaches_each_of_them() -> None:
    class Watcher:
        woken = False

        def note_bytes(self, size_bytes: int) -> None:
            raise AssertionError("nothing arrived")

        def wake(self) -> None:
            self.woken = True

    node, watchers = Node(), [Watcher(), Watcher()]
    node.open(topic("t", 2))
    for index, watcher in enumerate(watchers):
        node.replicas.find("t", index).watch(watcher, committed=False)
    node.replicas.wake_fetches()
    assert [fetch.woken for fetch in watchers] == [True, True]


def test_a_deleted_partition_is_given_back_without_the_garbage_collector() -> None:
    node = Node()
    image = topic("t", 1)
    node.open(image)
    node.append(node.replicas.find("t", 0))
    left = weakref.ref(node.replicas.find("t", 0)), weakref.ref(node.replicas.find("t", 0).log)
    gc.disable()
    try:
        node.replicas.delete_partitions(image)
        node.work()
        node.clock.advance(3600)
        node.work()
        assert [reference() for reference in left] == [None, None]
    finally:
        gc.enable()


def test_what_waits_for_the_disk_waits_for_few_of_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    node, many = Node(), 3 * REMOVED_TOGETHER
    disk, lines = node.disks[0], list[int]()

    def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        lines.append(len(disk.waiting))
        return ManualDisk.run(disk, function, *args, **kwargs)

    monkeypatch.setattr(disk, "run", run)
    node.open(topic("t", many))
    node.clock.advance(DURABLE_AFTER_S)
    node.work()
    node.replicas.delete_partitions(topic("t", many))
    node.work()
    assert max(lines) < UNDER_WAY
    # One look at the directory does for all of them, and each time only some are removed.
    assert len(node.clock.getDelayedCalls()) == 1
    lines.clear()
    node.clock.advance(3600)
    node.work()
    assert lines == [0] * 3
    assert not [name for name in node.names("a") if name.startswith("t-")]
