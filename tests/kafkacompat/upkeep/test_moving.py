"""Moving a partition to another log directory while it is used."""

from __future__ import annotations

import errno
import logging
from random import Random

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from kafkacompat.storage.log.copy import LogCopy
from kafkacompat.storage.log.log import AppendResult, Log
from kafkacompat.storage.segment.corruption import BadBatch
from kafkacompat.upkeep import moving
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, read_header
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import Survivors
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.upkeep.moves import SMALL, T, folders, home, move, offsets, restarted, step, two

pytestmark = pytest.mark.usefixtures("small_steps")


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


def test_known_damage_stays_known_after_a_move() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    bad = BadBatch(0, 10, 0, 0)
    partition.log.segments[0].remember_corrupt([bad])
    move(node)
    assert partition.log.examiner.corrupt == {0: (bad,)}


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
    assert [result.base_offset for result in results] == list(range(20, 80)) == offsets(partition)[20:]
    # What was found in the old log can still be sent.
    assert read_header(region.pread(0, region.size_bytes)).base_offset == 0
    region.release()


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_segments_deleted_during_a_move_are_not_in_the_copy(steps: int) -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.replicas.move("t", 0, "/b")
    for _ in range(steps):
        step(node)
    expired = list(partition.log.segments)[:2]
    partition.log.trimmer.detach(expired)
    partition.disk.run(partition.log.trimmer.mark_deleted, expired)
    partition.disk.run(partition.log.trimmer.delete_segments, expired)
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

    def adopt_and_delete(copy: LogCopy, high_watermark: int | None = None) -> Log:
        adopted = adopt(copy, high_watermark)
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
def test_of_two_logs_of_the_same_length_the_one_that_may_be_torn_is_not_taken(begin: str, end: str) -> None:
    """The copy was on the disk before it counted; what it was made of need not be."""
    node = Node("/a", "/b", config=SMALL)
    assert refusal(move_partition(node, "t", 0, begin)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(T)
    partition = node.replicas.find("t", 0)
    for _ in range(3):
        node.append(partition)
    fallen: list[MemoryFiles] = []

    def fall(_: str) -> None:
        if home(node) == end:
            fallen.extend(node.files.after(Survivors("none", "torn", Random(seed))) for seed in range(20))

    node.files.before_change = fall
    move(node, end)
    assert fallen
    for files in fallen:
        node.files = files
        after, survivor = restarted(node)
        assert (home(after), offsets(survivor)) == (end, [0, 1, 2])


@pytest.mark.parametrize(("begin", "end"), [("/a", "/b"), ("/b", "/a")])
def test_of_two_logs_the_newer_one_is_taken(begin: str, end: str) -> None:
    node = Node("/a", "/b", config=SMALL)
    assert refusal(move_partition(node, "t", 0, begin)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(T)
    partition = node.replicas.find("t", 0)
    for _ in range(20):
        node.append(partition)
    old = node.replicas.directories.find_home(("t", 0))
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


def test_a_move_goes_no_faster_than_it_may() -> None:
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.moves.rate = lambda: 100
    node.replicas.move("t", 0, "/b")
    size_bytes = partition.log.size_bytes
    copied: list[int] = []
    while home(node) == "/a":
        node.work()
        copied.extend(partition_move.copy.size_bytes for partition_move in node.moves)
        node.clock.advance(1)
    assert copied == list(range(100, size_bytes - moving.PAUSE_BELOW_BYTES + 100, 100))
    assert offsets(partition) == list(range(30))


def test_a_move_that_rests_notices_at_once_that_it_is_over() -> None:
    """A stop would wait for it, at a low rate for longer than service managers do."""
    node, partition = two()
    for _ in range(30):
        node.append(partition)
    node.moves.rate = lambda: 1
    for end in (node.moves.stop, lambda: node.moves.cancel(("t", 0))):
        node.replicas.move("t", 0, "/b")
        node.work()
        assert len(list(node.moves)) == 1
        ended = end()
        node.work()
        assert outcome(ended) is None
        assert node.clock.getDelayedCalls() == []


def test_a_partition_moves_there_and_back() -> None:
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
    results = [outcome(append) if isinstance(append, Deferred) else append for append in waiting]
    assert [result.base_offset for result in results] == list(range(20, 40))
    assert not any(directory.offline for directory in node.directories)


@pytest.mark.parametrize("steps", range(12))
def test_a_topic_is_deleted_while_it_moves_and_made_again(steps: int, caplog: pytest.LogCaptureFixture) -> None:
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
    assert not any(directory.offline for directory in node.directories)
    node.open(topic(topic_id=b"n" * 16))
    node.clock.advance(60)
    node.work()
    fresh = node.replicas.find("t", 0)
    assert fresh is not partition
    assert fresh.log.log_end_offset == 0
    assert node.append(fresh).base_offset == 0
    assert sorted(folders(node, "/a") + folders(node, "/b")) == ["t-0"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# What may be asked for


def test_impossible_moves_are_refused() -> None:
    node, _ = two()
    assert refusal(move_partition(node, "t", 0, "/nowhere")) == ErrorCode.LOG_DIR_NOT_FOUND
    assert refusal(move_partition(node, "t", 1, "/b")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(move_partition(node, "x" * 214, 0, "/b")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    node.replicas.take_directory_offline(node.directories[1], OSError("gone"))
    assert refusal(move_partition(node, "t", 0, "/b")) == ErrorCode.KAFKA_STORAGE_ERROR
    node.replicas.take_directory_offline(node.directories[0], OSError("gone"))
    assert refusal(move_partition(node, "t", 0, "/a")) == ErrorCode.KAFKA_STORAGE_ERROR


def move_partition(node: Node, name: str, index: int, path: str) -> Deferred[None]:
    return maybeDeferred(node.replicas.move, name, index, path)


def test_a_partition_is_made_where_it_was_wished_for() -> None:
    node = Node("/a", "/b")
    for path in ("/a", "/b"):
        assert refusal(move_partition(node, "t", 0, path)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.open(T)
    assert home(node) == "/b"


def test_a_move_to_where_it_goes_already_changes_nothing() -> None:
    node, _ = two()
    first = node.replicas.move("t", 0, "/b")
    second = node.replicas.move("t", 0, "/b")
    assert len(list(node.moves)) == 1
    node.work()
    outcome(first)
    outcome(second)
    assert home(node) == "/b"
    move(node)
    assert folders(node, "/b") == ["t-0"]
