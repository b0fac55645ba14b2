"""Moving a partition when a disk fails, or the process ends in the middle."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from kafkacompat.storage.log.copy import LogCopy
from kafkacompat.storage.log.log import Log
from tests.fakes.memory_files import Failure, MemoryFiles
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import Node
from tests.kafkacompat.upkeep.moves import SMALL, T, folders, home, move, offsets, restarted, step, two

pytestmark = pytest.mark.usefixtures("small_steps")


class CrashError(BaseException):
    """The process is gone."""


class CrashingFiles(MemoryFiles):
    """Ends the process in the middle of the operation of a given number."""

    def __init__(self) -> None:
        super().__init__()
        self.operations_left = -1

    def fail(self, operation: str, size_bytes: int = 0) -> Failure | None:
        if self.operations_left == 0:
            raise CrashError
        self.operations_left -= 1
        return super().fail(operation, size_bytes)


@pytest.mark.parametrize("operation", ["append", "sync", "sync_directory", "open"])
def test_a_directory_that_fails_takes_no_partition_with_it(operation: str) -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.files.fail_on(operation, errno.EIO)
    node.replicas.move("t", 0, "/b").addErrback(lambda _: None)
    node.work()
    assert [directory.offline for directory in node.directories] == [False, True]
    assert home(node) == "/a"
    assert node.append(partition).base_offset == 20


def test_a_full_disk_only_ends_the_move() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.files.fail_on("append", errno.ENOSPC)
    node.replicas.move("t", 0, "/b").addErrback(lambda _: None)
    node.work()
    assert [directory.offline for directory in node.directories] == [False, False]
    assert (home(node), folders(node, "/b")) == ("/a", [])
    assert node.append(partition).base_offset == 20
    move(node)
    assert offsets(partition) == list(range(21))


def test_a_log_that_cannot_be_read_goes_offline() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.files.fail_on("pread", errno.EIO)
    node.replicas.move("t", 0, "/b")
    node.work()
    assert [directory.offline for directory in node.directories] == [True, False]
    assert partition.closed


def test_a_whole_copy_is_kept_when_the_other_directory_fails() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    storage = node.directories[1].storage
    adopt = storage.adopt

    def adopt_and_fail(copy: LogCopy, high_watermark: int | None = None) -> Log:
        adopted = adopt(copy, high_watermark)
        node.replicas.take_directory_offline(node.directories[0], OSError("gone"))
        return adopted

    storage.adopt = adopt_and_fail  # type: ignore[method-assign]
    node.replicas.move("t", 0, "/b")
    node.work()
    assert partition.closed
    node.files.crash()
    without_the_first = Node("/b", files=node.files, config=SMALL)
    without_the_first.open(T)
    assert offsets(without_the_first.replicas.find("t", 0)) == list(range(30))


# Crashes


def count_crashes(crash: Callable[[int], bool]) -> int:
    """Crash after 0, 1, 2 ... operations until none is left; returns how many crashes there were."""
    for number in range(1000):
        if not crash(number):
            return number
    raise AssertionError("the move does not end")


@pytest.mark.parametrize("lose_unsynced", [False, True])
def test_a_crash_at_any_instant_leaves_one_whole_log(lose_unsynced: bool) -> None:
    def crash(operations: int) -> bool:
        files = CrashingFiles()
        node, partition = two(files)
        for _ in range(20):
            node.append(partition)
        node.replicas.delete_records(partition, 3)
        partition.flush()
        node.work()
        files.operations_left = operations
        written: list[int] = []
        node.replicas.move("t", 0, "/b").addErrback(lambda _: None)
        try:
            while step(node) and files.operations_left > 0:
                if len(written) < 5 * (operations % 2):
                    partition.append(node.batch(), node.now_ms)
                    written.append(partition.log.log_end_offset)
        except CrashError:
            pass
        crashed = files.operations_left == 0
        files.operations_left = -1
        files.crash(lose_unsynced)
        after, survivor = restarted(node)
        base_offsets = offsets(survivor)
        assert base_offsets[:17] == list(range(3, 20)), operations
        assert base_offsets == list(range(3, 3 + len(base_offsets)))
        after.work()
        assert not any("future" in name for path in ("/a", "/b") for name in folders(after, path))
        assert sum(folders(after, path).count("t-0") for path in ("/a", "/b")) == 1
        assert after.append(survivor).base_offset == 3 + len(base_offsets)
        return crashed

    assert count_crashes(crash) > 20


def test_a_move_that_was_under_way_is_begun_again() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    step(node)
    step(node)
    stopped = node.moves.stop()
    node.work()
    outcome(stopped)
    assert (home(node), folders(node, "/b")) == ("/a", ["t-0-future"])
    for directory, logs in node.replicas.logs_by_directory():
        directory.storage.close(logs)
    after, survivor = restarted(node)
    assert (home(after), folders(after, "/b")) == ("/b", ["t-0"])
    assert offsets(survivor) == list(range(20))
