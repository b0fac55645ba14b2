"""Appends that are answered once they are on the disk: the rounds, who may see what, and how waiting ends."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.group_commit import PATIENCE_S
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.partitions.test_partition import Watcher
from tests.kafkacompat.upkeep.moves import T, home, offsets, step

TWO_BATCHES = LogConfig(segment_bytes=400)


def syncing(*paths: str, config: LogConfig | None = None, partitions: int = 1) -> tuple[Node, Partition]:
    """A node that syncs before it answers, with a topic t, and t-0."""
    node = Node(*paths, config=config, syncs_always=True)
    node.open(topic("t", partitions))
    return node, node.replicas.find("t", 0)


def waiting(node: Node, partition: Partition, records: bytes | None = None) -> Deferred[AppendResult]:
    """Append a batch, which waits."""
    appended = partition.append(records or node.batch(), node.now_ms)
    assert isinstance(appended, Deferred)
    return appended


def stored(node: Node, partition: Partition) -> AppendResult:
    """Append a batch, in a segment of its own if need be, and wait."""
    appended = waiting(node, partition)
    while not has_fired(appended):
        node.sync()
    return outcome(appended)


def numbered(node: Node, sequence: int) -> bytes:
    """A batch of an idempotent producer."""
    record: Any = (node.now_ms, b"k", b"v", ())
    return build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)


def begin(node: Node) -> None:
    """Let a round begin; what it is to do waits for its disk."""
    node.clock.advance(0)


def test_nothing_is_answered_or_seen_before_it_is_on_the_disk() -> None:
    node, partition = syncing()
    watcher = Watcher()
    partition.watch(watcher, committed=False)
    appended = waiting(node, partition)
    begin(node)
    assert not has_fired(appended)
    assert (partition.high_watermark.offset, partition.last_stable_offset, watcher.bytes) == (0, 0, 0)
    assert partition.read(0, 1000, at_least_one_batch=True).size_bytes == 0
    searches = [partition.find_timestamp(0), partition.find_max_timestamp()]
    begins = partition.segment_starts(node.now_ms)
    node.work()
    assert outcome(appended).base_offset == 0
    assert (partition.high_watermark.offset, watcher.bytes) == (1, len(node.batch()))
    assert partition.read(0, 1000, at_least_one_batch=True).size_bytes == len(node.batch())
    assert begins == [(0, node.now_ms)]
    # The disk was asked for them after it had synced.
    assert [outcome(search).offset for search in searches if search is not None] == [0, 0]  # type: ignore[union-attr]
    assert partition.segment_starts(node.now_ms) == [(0, node.now_ms), (1, node.now_ms)]


def test_a_search_by_time_finds_nothing_that_is_not_on_the_disk() -> None:
    node, partition = syncing()
    waiting(node, partition)
    searches = [partition.find_timestamp(0), partition.find_max_timestamp()]
    node.disks[0].work()
    assert [outcome(search) for search in searches] == [None, None]


def test_one_round_is_for_everybody_and_the_next_for_those_who_came_meanwhile() -> None:
    node, _ = syncing(partitions=3)
    commit = node.directories[0].commit
    partitions = [node.replicas.find("t", index) for index in range(3)]
    first = [waiting(node, partition) for partition in partitions for _ in range(2)]
    begin(node)
    assert commit.rounds == 1
    late = waiting(node, partitions[1])
    node.disks[0].waiting.popleft()()
    assert [has_fired(append) for append in [*first, late]] == [True] * 6 + [False]
    assert commit.rounds == 2
    node.work()
    assert outcome(late).base_offset == 2
    assert commit.rounds == 2
    assert node.clock.getDelayedCalls() == []


def test_what_a_segment_held_before_the_roll_is_synced_with_it() -> None:
    node, partition = syncing(config=TWO_BATCHES)
    appended = [waiting(node, partition) for _ in range(7)]
    begin(node)
    while step(node):
        assert partition.high_watermark.offset <= partition.log.recovery_point
        assert sum(map(has_fired, appended)) == partition.high_watermark.offset
    node.sync()
    assert [outcome(append).base_offset for append in appended] == list(range(7))
    assert partition.high_watermark == partition.log.end_position()
    node.files.crash()
    after = node.next_process()
    after.open(T)
    assert offsets(after.replicas.find("t", 0)) == list(range(7))


def test_a_duplicate_waits_for_the_batch_it_repeats_and_for_no_other() -> None:
    node, partition = syncing()
    appended = [waiting(node, partition, numbered(node, 0)) for _ in range(2)]
    begin(node)
    assert not any(map(has_fired, appended))
    node.work()
    assert [outcome(append).duplicate for append in appended] == [False, True]
    waiting(node, partition, numbered(node, 1))
    again = partition.append(numbered(node, 0), node.now_ms)
    assert isinstance(again, AppendResult)
    assert (again.duplicate, again.base_offset) == (True, 0)


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_failed_sync_refuses_everybody_and_is_never_tried_again(error: int) -> None:
    node, partition = syncing(partitions=2)
    other = node.replicas.find("t", 1)
    appended = [waiting(node, partition), waiting(node, other)]
    begin(node)
    late = waiting(node, other)
    node.files.fail_on("sync", error)
    node.sync()
    assert [refusal(append) for append in [*appended, late]] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    assert node.directories[0].offline
    assert partition.log.recovery_point == 0
    assert (partition.high_watermark.offset, other.high_watermark.offset) == (0, 0)
    assert (list(node.disks[0].waiting), node.clock.getDelayedCalls()) == ([], [])
    assert node.directories[0].commit.rounds == 1


def without_room(error: int, times: int) -> tuple[Node, list[Deferred[AppendResult]]]:
    """A round that cannot write the indexes of a segment that was rolled, and who waits for it."""
    node, partition = syncing(config=TWO_BATCHES)
    appended = [waiting(node, partition) for _ in range(4)]
    begin(node)
    node.disks[0].waiting.popleft()()
    node.files.fail_on("append", error, times=times)
    return node, appended


def put_off(error: int, times: int) -> tuple[Node, list[Deferred[AppendResult]]]:
    """The same when it has failed."""
    node, appended = without_room(error, times)
    node.work()
    assert not any(map(has_fired, appended))
    assert not node.directories[0].offline
    return node, appended


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_a_round_for_which_there_is_no_room_is_made_again(error: int, caplog: pytest.LogCaptureFixture) -> None:
    node, appended = put_off(error, times=4)
    for _ in range(4):
        node.clock.advance(PATIENCE_S)
        node.work()
    assert [outcome(append).base_offset for append in appended] == list(range(4))
    assert len([message for message in caplog.messages if "keep waiting" in message]) == 1
    assert node.clock.getDelayedCalls() == []


@pytest.mark.parametrize("until", [without_room, put_off])
def test_nobody_waits_for_room_who_has_gone(
    until: Callable[[int, int], tuple[Node, list[Deferred[AppendResult]]]],
) -> None:
    node, appended = until(errno.ENOSPC, 2)
    node.replicas.delete_partitions(topic("t", 1))
    node.work()
    assert [refusal(append) for append in appended] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 4
    node.clock.advance(PATIENCE_S)
    node.work()
    assert not node.directories[0].offline


def test_the_end_does_not_wait_for_room() -> None:
    node, appended = put_off(errno.ENOSPC, times=100)
    finished = node.directories[0].commit.finish()
    node.sync()
    assert finished.called
    assert [refusal(append) for append in appended] == [ErrorCode.KAFKA_STORAGE_ERROR] * 4


def test_a_deleted_partition_is_answered_once_and_the_round_goes_on() -> None:
    node, partition = syncing(partitions=2)
    other = topic("u", 1, b"u" * 16)
    node.open(other)
    kept = node.replicas.find("u", 0)
    appended = [waiting(node, partition), waiting(node, kept)]
    begin(node)
    late = waiting(node, partition)
    node.replicas.delete_partitions(topic("t", 2))
    assert [refusal(append) for append in (appended[0], late)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    node.sync()
    assert outcome(appended[1]).base_offset == 0
    assert not node.directories[0].offline


def test_a_move_answers_what_waits_for_the_old_directory(small_steps: None) -> None:
    node, partition = syncing("/a", "/b")
    for _ in range(10):
        waiting(node, partition)
    node.sync()
    moving = node.replicas.move("t", 0, "/b")
    appended = [waiting(node, partition)]
    while home(node) == "/a":
        begin(node)
        step(node)
        if partition.high_watermark.offset == 10 and len(appended) < 5:
            appended.append(waiting(node, partition))
    node.sync()
    outcome(moving)
    late = waiting(node, partition)
    node.sync()
    assert [outcome(append).base_offset for append in [*appended, late]] == list(range(10, 11 + len(appended)))
    assert partition.high_watermark == partition.log.end_position()
    assert [directory.commit.finish().called for directory in node.directories] == [True, True]


def test_the_end_waits_for_the_last_round() -> None:
    node, partition = syncing()
    commit = node.directories[0].commit
    assert commit.finish().called
    appended = waiting(node, partition)
    finished = commit.finish()
    begin(node)
    assert not finished.called
    node.work()
    assert (has_fired(appended), finished.called) == (True, True)


def test_a_recovered_log_is_on_the_disk_before_it_is_served() -> None:
    node, partition = syncing()
    node.append(partition)
    files = node.files
    partition.append(node.batch(), node.now_ms)
    files.crash(lose_unsynced=False)
    node = node.next_process()
    node.open(T)
    partition = node.replicas.find("t", 0)
    assert (partition.high_watermark.offset, partition.log.recovery_point) == (2, 2)
    files.crash()
    node = node.next_process()
    node.open(T)
    assert offsets(node.replicas.find("t", 0)) == [0, 1]


def test_a_recovered_log_that_cannot_be_synced_takes_its_directory_offline() -> None:
    node, partition = syncing()
    partition.append(node.batch(), node.now_ms)
    node.files.crash(lose_unsynced=False)
    node = node.next_process()
    opening = node.replicas.open_partitions(T)
    node.disks[0].waiting.popleft()()
    node.files.fail_on("sync", errno.EIO)
    node.work()
    outcome(opening)
    assert node.directories[0].offline


def test_what_a_failed_sync_let_go_of_is_on_the_disk_before_anything_stands_behind_it() -> None:
    """The process that failed is started again, and finds in memory what the kernel will not write any more."""
    node, partition = syncing(config=TWO_BATCHES)
    for _ in range(5):
        stored(node, partition)
    lost = waiting(node, partition)
    node.files.fail_on("sync", errno.EIO)
    node.sync()
    assert refusal(lost) == ErrorCode.KAFKA_STORAGE_ERROR
    node.files.crash(lose_unsynced=False)
    node = node.next_process()
    node.open(T)
    assert stored(node, node.replicas.find("t", 0)).base_offset == 6
    node.files.crash()
    node = node.next_process()
    node.open(T)
    assert offsets(node.replicas.find("t", 0)) == list(range(7))


# flush.messages, without waiting for every sync


def test_flush_messages_lets_everybody_wait_until_the_sync_is_done() -> None:
    node = Node(config=LogConfig(flush_messages=2))
    node.open(T)
    partition = node.replicas.find("t", 0)
    assert isinstance(partition.append(node.batch(), node.now_ms), AppendResult)
    second = waiting(node, partition)
    third = waiting(node, partition)
    assert partition.high_watermark.offset == 1
    node.sync()
    assert [outcome(append).base_offset for append in (second, third)] == [1, 2]
    assert (partition.high_watermark.offset, partition.log.recovery_point) == (3, 3)
    assert isinstance(partition.append(node.batch(), node.now_ms), AppendResult)
    assert partition.high_watermark.offset == 4


def test_flush_messages_counts_what_the_process_before_had_not_synced() -> None:
    node = Node(config=LogConfig(flush_messages=2))
    node.open(T)
    for _ in range(2):
        node.replicas.find("t", 0).append(node.batch(), node.now_ms)
    node.files.crash(lose_unsynced=False)
    node = node.next_process()
    node.open(T)
    partition = node.replicas.find("t", 0)
    assert (partition.high_watermark.offset, partition.log.recovery_point) == (2, 2)


def test_a_repeated_batch_waits_for_the_sync_also_where_consumers_saw_it_before() -> None:
    node = Node()
    node.open(T)
    partition = node.replicas.find("t", 0)
    assert isinstance(partition.append(numbered(node, 0), node.now_ms), AppendResult)
    partition.log.config = LogConfig(flush_messages=1)
    repeated = waiting(node, partition, numbered(node, 0))
    node.sync()
    assert (outcome(repeated).duplicate, partition.log.recovery_point) == (True, 1)


def test_a_log_in_the_page_cache_asks_for_no_sync() -> None:
    node = Node()
    node.open(T)
    node.append(node.replicas.find("t", 0))
    assert (list(node.disks[0].waiting), node.clock.getDelayedCalls()) == ([], [])
