"""Moving a partition to another log directory while it is used."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from kafkacompat.replication import moving
from kafkacompat.replication.finding import find_partitions
from kafkacompat.replication.partition import Partition
from kafkacompat.storage import log_copy
from kafkacompat.storage.log import AppendResult, Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.log_copy import LogCopy
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_header
from tests.fakes.memory_files import Failure, MemoryFiles
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.replication.node import Node, topic

SMALL = LogConfig(segment_bytes=1000)
T = topic()


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even a short log take several steps."""
    monkeypatch.setattr(moving, "STEP_BYTES", 400)
    monkeypatch.setattr(moving, "PAUSE_BELOW_BYTES", 300)
    monkeypatch.setattr(log_copy, "CHUNK_BYTES", 300)
    monkeypatch.setattr(log_copy, "SYNC_BYTES", 700)


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


def two(files: MemoryFiles | None = None, config: LogConfig = SMALL) -> tuple[Node, Partition]:
    """A node with t-0 in /a, and /b for it to go to."""
    node = Node("/a", "/b", files=files, config=config)
    node.open(T)
    return node, node.replicas.find("t", 0)


def restarted(node: Node) -> tuple[Node, Partition]:
    """The next process over the same files, as a broker starts it."""
    after = Node("/a", "/b", files=node.files, config=node.config)
    after.directories[0].partitions.clear()
    directories = type(after.replicas.directories)(after.directories)
    after.replicas.directories = directories
    after.replicas.moves._directories = directories
    finding = Deferred.fromCoroutine(find_partitions(directories, {"t": T}))
    after.work()
    outcome(finding)
    after.open(T)
    return after, after.replicas.find("t", 0)


def offsets(partition: Partition) -> list[int]:
    """The base offsets of all batches, read as consumers do."""
    found, offset = [], partition.log.log_start_offset
    while (region := partition.log.read(offset, 1, partition.high_watermark)) is not None:
        header = read_header(region.pread(0, region.size_bytes))
        region.release()
        found.append(header.base_offset)
        offset = header.last_offset + 1
    return found


def step(node: Node) -> bool:
    """Let each disk do one thing; False when nothing waits."""
    waiting = [disk for disk in node.disks if disk.waiting]
    for disk in waiting:
        disk.waiting.popleft()()
    return bool(waiting)


def move(node: Node, path: str = "/b") -> None:
    outcome_of = node.replicas.move("t", 0, path)
    node.work()
    outcome(outcome_of)


def home(node: Node) -> str:
    found = node.replicas.directories.home(("t", 0))
    assert found is not None
    return found.path


def folders(node: Node, path: str) -> list[str]:
    """Partition folders, with what is random in their names cut out."""
    names = [name for name in node.names(path) if name.startswith("t-0")]
    return sorted(f"{name[:3]}-{name.rpartition('-')[2]}" if "." in name else name for name in names)


# Moving


def test_a_partition_moves_with_everything_in_it() -> None:
    node, partition = two()
    producer = build_batch([(node.now_ms, b"k", b"v", ())], producer_id=7, producer_epoch=0, base_sequence=0)
    partition.append(producer, node.now_ms)
    for _ in range(30):
        node.append(partition)
    before = offsets(partition)
    epochs = partition.log.leader_epochs.entries
    move(node)
    assert home(node) == "/b"
    assert offsets(partition) == before == list(range(31))
    assert partition.log.leader_epochs.entries == epochs
    assert (folders(node, "/a"), folders(node, "/b")) == (["t-0-delete"], ["t-0"])
    again = partition.append(producer, node.now_ms)
    assert isinstance(again, AppendResult)
    assert again.duplicate
    assert node.append(partition).base_offset == 31


def test_the_moved_log_is_there_after_a_restart() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    move(node)
    after = node.restart(T)
    assert home(after) == "/b"
    assert offsets(after.replicas.find("t", 0)) == list(range(30))


def test_the_old_log_is_deleted_when_file_delete_delay_is_over() -> None:
    node, _ = two()
    move(node)
    assert folders(node, "/a") == ["t-0-delete"]
    node.clock.advance(60)
    node.work()
    assert folders(node, "/a") == []


def test_appends_and_fetches_go_on_while_a_partition_moves() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    region = partition.log.read(0, 100)
    assert region is not None
    begun = node.replicas.move("t", 0, "/b")
    results: list[AppendResult] = []
    for _ in range(60):
        appended = partition.append(node.batch(), node.now_ms)
        if isinstance(appended, Deferred):
            appended.addCallback(results.append)
        else:
            results.append(appended)
        assert offsets(partition)[:20] == list(range(20))
        step(node)
    node.work()
    outcome(begun)
    assert home(node) == "/b"
    assert [each.base_offset for each in results] == list(range(20, 80)) == offsets(partition)[20:]
    # What was found in the old log can still be sent.
    assert read_header(region.pread(0, region.size_bytes)).base_offset == 0
    region.release()


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_what_retention_takes_meanwhile_is_not_in_the_copy(steps: int) -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    for _ in range(steps):
        step(node)
    expired = list(partition.log.segments)[:2]
    partition.log.detach(expired)
    partition.disk.run(partition.log.mark_deleted, expired)
    partition.disk.run(partition.log.delete_segments, expired)
    start = partition.log.log_start_offset
    node.work()
    assert (home(node), offsets(partition)) == ("/b", list(range(start, 30)))
    stored = [name for name in node.names("/b", "t-0") if name.endswith(".log")]
    assert [int(name[:-4]) for name in stored] == [segment.base_offset for segment in partition.log.segments]


def test_records_deleted_at_the_last_instant_stay_away() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    storage, deleted = node.directories[1].storage, []
    adopt = storage.adopt

    def adopt_and_delete(copy: LogCopy) -> Log:
        adopted = adopt(copy)
        deleted.append(node.replicas.delete_records(partition, 17))
        return adopted

    storage.adopt = adopt_and_delete  # type: ignore[method-assign]
    move(node)
    assert outcome(deleted[0]) == 17
    assert (home(node), offsets(partition)) == ("/b", list(range(17, 30)))
    partition.flush()
    node.work()
    node.files.crash()
    _, after = restarted(node)
    assert (after.log.log_start_offset, offsets(after)) == (17, list(range(17, 30)))


@pytest.mark.parametrize(("begin", "end"), [("/a", "/b"), ("/b", "/a")])
def test_of_two_logs_the_newer_one_is_taken(begin: str, end: str) -> None:
    node = Node("/a", "/b", config=SMALL)
    assert refusal(of(node, "t", 0, begin)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(T)
    partition = node.replicas.find("t", 0)
    for _ in range(20):
        node.append(partition)
    old = node.replicas.directories.home(("t", 0))
    assert old is not None

    def fail(_: object) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    old.storage.delete_log = fail  # type: ignore[method-assign, assignment]
    move(node, end)
    assert (home(node), old.offline) == (end, True)
    node.append(partition)
    partition.flush()
    node.work()
    node.files.crash()
    after, survivor = restarted(node)
    assert home(after) == end
    assert offsets(survivor) == list(range(21))
    assert folders(after, begin) == ["t-0-stray"]


def test_a_whole_copy_is_kept_when_the_other_directory_fails() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    storage = node.directories[1].storage
    adopt = storage.adopt

    def adopt_and_fail(copy: LogCopy) -> Log:
        adopted = adopt(copy)
        node.replicas.directory_failed(node.directories[0], OSError("gone"))
        return adopted

    storage.adopt = adopt_and_fail  # type: ignore[method-assign]
    node.replicas.move("t", 0, "/b")
    node.work()
    assert partition.closed
    node.files.crash()
    without_the_first = Node("/b", files=node.files, config=SMALL)
    without_the_first.open(T)
    assert offsets(without_the_first.replicas.find("t", 0)) == list(range(30))


def test_a_move_goes_no_faster_than_it_may() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.replicas.moves.rate = lambda: 100
    node.replicas.move("t", 0, "/b")
    size_bytes = partition.log.size_bytes
    copied: list[int] = []
    while home(node) == "/a":
        node.work()
        copied.extend(each.copy.size_bytes for each in node.replicas.moves)
        node.clock.advance(1)
    assert copied == list(range(100, size_bytes - moving.PAUSE_BELOW_BYTES + 100, 100))
    assert offsets(partition) == list(range(30))


def test_there_and_back_again() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    outcome_of = node.replicas.delete_records(partition, 5)
    node.work()
    assert outcome(outcome_of) == 5
    for path in ("/b", "/a", "/b", "/a"):
        move(node, path)
        assert home(node) == path
        node.append(partition)
    assert offsets(partition) == list(range(5, 24))
    node.files.crash()
    _, after = restarted(node)
    assert after.log.log_start_offset == 5
    assert offsets(after)[:15] == list(range(5, 20))


# Giving up


@pytest.mark.parametrize("steps", range(8))
def test_a_move_is_given_up_by_choosing_where_the_partition_is(steps: int) -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    begun = node.replicas.move("t", 0, "/b")
    for _ in range(steps):
        step(node)
    move(node, "/a")
    node.work()
    assert has_fired(begun)
    assert home(node) == "/a"
    assert node.append(partition).base_offset == 20
    assert folders(node, "/a")[0] == "t-0"
    assert "t-0" not in folders(node, "/b")
    node.clock.advance(60)
    node.work()
    assert folders(node, "/b") == []


@pytest.mark.parametrize("steps", range(4))
def test_a_move_that_is_given_up_leaves_those_in_line_alone(steps: int) -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    step(node)
    waiting = [partition.append(node.batch(), node.now_ms) for _ in range(20)]
    for _ in range(steps):
        node.disks[1].work()
    node.replicas.move("t", 0, "/a")
    node.disks[1].work()
    node.work()
    results = [outcome(each) if isinstance(each, Deferred) else each for each in waiting]
    assert [each.base_offset for each in results] == list(range(20, 40))
    assert not any(each.offline for each in node.directories)


@pytest.mark.parametrize("steps", range(12))
def test_a_topic_is_deleted_while_it_moves_and_made_again(steps: int) -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    for _ in range(steps):
        step(node)
    deleted = node.replicas.delete_partitions(T)
    while not has_fired(deleted):
        assert step(node)
    assert "t-0" not in folders(node, "/a") + folders(node, "/b")
    assert not any(each.offline for each in node.directories)
    node.open(topic(topic_id=b"n" * 16))
    node.clock.advance(60)
    node.work()
    fresh = node.replicas.find("t", 0)
    assert fresh is not partition
    assert fresh.log.log_end_offset == 0
    assert node.append(fresh).base_offset == 0
    assert sorted(folders(node, "/a") + folders(node, "/b")) == ["t-0"]


@pytest.mark.parametrize("operation", ["append", "sync", "sync_directory", "open"])
def test_a_directory_that_fails_takes_no_partition_with_it(operation: str) -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.files.fail_on(operation, errno.EIO)
    node.replicas.move("t", 0, "/b").addErrback(lambda _: None)
    node.work()
    assert [each.offline for each in node.directories] == [False, True]
    assert home(node) == "/a"
    assert node.append(partition).base_offset == 20


def test_a_full_disk_only_ends_the_move() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.files.fail_on("append", errno.ENOSPC)
    node.replicas.move("t", 0, "/b").addErrback(lambda _: None)
    node.work()
    assert [each.offline for each in node.directories] == [False, False]
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
    assert [each.offline for each in node.directories] == [True, False]
    assert partition.closed


# Crashes


def lives(crash: Callable[[int], bool]) -> int:
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
        found = offsets(survivor)
        assert found[:17] == list(range(3, 20)), operations
        assert found == list(range(3, 3 + len(found)))
        after.work()
        assert not any("future" in name for path in ("/a", "/b") for name in folders(after, path))
        assert sum(folders(after, path).count("t-0") for path in ("/a", "/b")) == 1
        assert after.append(survivor).base_offset == 3 + len(found)
        return crashed

    assert lives(crash) > 20


def test_a_move_that_was_under_way_is_begun_again() -> None:
    node, partition = two()
    for _ in range(20):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    step(node)
    step(node)
    stopped = node.replicas.moves.stop()
    node.work()
    outcome(stopped)
    assert (home(node), folders(node, "/b")) == ("/a", ["t-0-future"])
    for directory, logs in node.replicas.by_directory():
        directory.storage.close(logs)
    after, survivor = restarted(node)
    assert (home(after), folders(after, "/b")) == ("/b", ["t-0"])
    assert offsets(survivor) == list(range(20))


# What may be asked for


def test_what_cannot_be_moved() -> None:
    node, _ = two()
    assert refusal(of(node, "t", 0, "/nowhere")) == ErrorCode.LOG_DIR_NOT_FOUND
    assert refusal(of(node, "t", 1, "/b")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(of(node, "x" * 214, 0, "/b")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    node.replicas.directory_failed(node.directories[1], OSError("gone"))
    assert refusal(of(node, "t", 0, "/b")) == ErrorCode.KAFKA_STORAGE_ERROR
    node.replicas.directory_failed(node.directories[0], OSError("gone"))
    assert refusal(of(node, "t", 0, "/a")) == ErrorCode.KAFKA_STORAGE_ERROR


def of(node: Node, name: str, index: int, path: str) -> Deferred[None]:
    return maybeDeferred(node.replicas.move, name, index, path)


def test_a_partition_is_made_where_it_was_wished_for() -> None:
    node = Node("/a", "/b")
    for path in ("/a", "/b"):
        assert refusal(of(node, "t", 0, path)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(T)
    assert home(node) == "/b"


def test_a_move_to_where_it_goes_already_changes_nothing() -> None:
    node, _ = two()
    first = node.replicas.move("t", 0, "/b")
    second = node.replicas.move("t", 0, "/b")
    assert len(list(node.replicas.moves)) == 1
    node.work()
    outcome(first)
    outcome(second)
    assert home(node) == "/b"
    move(node)
    assert folders(node, "/b") == ["t-0"]
