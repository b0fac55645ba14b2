"""Transactions in a partition: up to where it is stable, what readers of committed records wait for, and what they receive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.fetch_sessions import WantedPartition
from kafkacompat.partitions.fetching import FetchedPartition, FetchLimits, fetch_partitions, release_unsent
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import MARKER_BYTES, Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.metadata.deferreds import has_fired, outcome
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.upkeep.moves import home

SMALL = LogConfig(segment_bytes=400)


class World:
    """A node with a topic t of one partition."""

    def __init__(self, *paths: str, **given: Any) -> None:
        self.node = Node(*paths, **given)
        self.node.open(topic())
        self._sequences: dict[int, int] = {}

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find("t", 0)

    def sent(self, producer_id: int) -> bytes:
        """The next batch of a transaction."""
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + 1
        return build_batch(
            [(self.node.now_ms, b"k", b"v" * 100, [])],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )

    def write(self, producer_id: int) -> AppendResult | Deferred[AppendResult]:
        return self.partition.append(self.sent(producer_id), self.node.now_ms, guard=NOT_VERIFIED)

    def end(self, producer_id: int, *, commit: bool = True) -> AppendResult | Deferred[AppendResult]:
        return self.partition.append_marker(Marker(producer_id, 0, 0, commit, 0), self.node.now_ms)

    def plain(self) -> None:
        self.node.append(self.partition)

    @property
    def ends(self) -> tuple[int, int]:
        """The high watermark and the last stable offset."""
        return self.partition.high_watermark.offset, self.partition.last_stable_offset

    def fetch(self, offset: int = 0, **limits: Any) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        """Fetch as a reader of committed records."""
        given = {"min_bytes": 1, "max_bytes": 1 << 20, "max_wait_ms": 500, "committed": True, **limits}
        wanted = [WantedPartition("t", 0, offset, 1 << 20)]
        return fetch_partitions(lambda _: self.partition, wanted, FetchLimits(**given), self.node.clock)

    def read(self, offset: int = 0) -> tuple[int, list[tuple[int, int]]]:
        """Return the size in bytes of a fetch that does not wait, and its aborted transactions as (producer, first offset)."""
        fetched = self.fetch(offset, max_wait_ms=0)
        self.node.work()
        (partition,) = fetched if isinstance(fetched, list) else outcome(fetched)
        assert partition.read is not None and partition.error_code == 0, partition
        result = (
            partition.size_bytes,
            [(transaction.producer_id, transaction.first_offset) for transaction in partition.read.aborted],
        )
        partition.release()
        return result

    def restarted(self) -> World:
        after = World.__new__(World)
        after.node, after._sequences = self.node.restart(topic()), self._sequences
        return after

    def killed(self) -> World:
        after = World.__new__(World)
        after.node = Node(files=self.node.files.killed(), config=self.node.config)
        after.node.open(topic())
        after._sequences = self._sequences
        return after


SIZE = len(World().sent(1))
PLAIN_SIZE = len(World().node.batch())


def test_a_log_is_stable_up_to_the_first_open_transaction() -> None:
    world = World()
    world.plain()
    assert world.ends == (1, 1)
    world.write(1)
    world.write(2)
    world.plain()
    assert world.ends == (4, 1)
    world.end(2)
    assert world.ends == (5, 1)
    world.end(1, commit=False)
    assert world.ends == (6, 6)
    world.write(1)
    assert world.ends == (7, 6)


def test_a_transaction_is_open_until_its_marker_is_on_the_disk_where_appends_wait_for_that() -> None:
    world = World(syncs_always=True)
    written = world.write(1)
    world.node.sync()
    assert isinstance(written, Deferred) and outcome(written).base_offset == 0
    assert world.ends == (1, 0)
    ended = world.end(1)
    assert isinstance(ended, Deferred) and not has_fired(ended)
    assert world.ends == (1, 0)
    assert world.read() == (0, [])
    world.node.sync()
    assert outcome(ended).base_offset == 1
    assert world.ends == (2, 2)
    assert world.read() == (SIZE + MARKER_BYTES, [])


def test_a_marker_waits_behind_the_batches_of_its_transaction_that_are_in_line() -> None:
    world = World(config=SMALL)
    world.write(1)
    world.write(1)
    waiting = [world.write(1), world.end(1, commit=False), world.write(1)]
    assert all(isinstance(append, Deferred) for append in waiting)
    world.node.work()
    assert [outcome(append).base_offset for append in waiting if isinstance(append, Deferred)] == [2, 3, 4]
    assert world.ends == (5, 4)
    assert world.read(2) == (SIZE + MARKER_BYTES, [(1, 0)])


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        (Marker(1, -1, 5, True, 0), ErrorCode.INVALID_REQUEST),
        (Marker(2, -1, 5, True, 0), ErrorCode.INVALID_REQUEST),
        (Marker(-1, 0, 5, True, 0), ErrorCode.INVALID_REQUEST),
        (Marker(1, 0, 5, True, 2), ErrorCode.INVALID_PRODUCER_EPOCH),
        (Marker(1, 0, 4, True, 0), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (Marker(1, 1, 4, True, 2), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (Marker(1, 1, -1, True, 0), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (Marker(2, 0, -2, True, 0), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_markers_that_come_too_late_or_of_nobody_are_refused(marker: Marker, code: ErrorCode) -> None:
    world = World()
    world.partition.append_marker(Marker(1, 0, 5, False, 0), world.node.now_ms)
    world.write(1)
    with pytest.raises(KafkaError) as refused:
        world.partition.append_marker(marker, world.node.now_ms)
    assert refused.value.code == code
    assert world.ends == (2, 1)


@pytest.mark.parametrize(("epoch", "version"), [(0, 0), (0, 1), (1, 2)])
def test_a_marker_may_be_repeated(epoch: int, version: int) -> None:
    world = World()
    world.write(1)
    for offset in (1, 2):
        ended = world.partition.append_marker(Marker(1, epoch, 0, False, version), world.node.now_ms)
        assert isinstance(ended, AppendResult) and ended.base_offset == offset
    assert world.ends == (3, 3)
    assert world.read()[1] == [(1, 0)]


def test_a_marker_of_a_producer_that_has_used_up_its_epochs_may_have_the_same() -> None:
    world = World()
    last = build_batch(
        [(world.node.now_ms, b"k", b"v", [])],
        producer_id=1,
        producer_epoch=2**15 - 1,
        base_sequence=0,
        transactional=True,
    )
    world.partition.append(last, world.node.now_ms, guard=NOT_VERIFIED)
    world.partition.append_marker(Marker(1, 2**15 - 1, 0, True, 2), world.node.now_ms)
    assert world.ends == (2, 2)


def test_no_limit_of_producers_stops_a_marker() -> None:
    world = World(config=LogConfig(max_message_bytes=10), reserve_bytes=1 << 60)
    world.node.directories[0].space.measure()
    world.node.work()
    with pytest.raises(KafkaError, match="full"):
        world.partition.append(world.node.batch(), world.node.now_ms)
    world.end(1)
    assert world.ends == (1, 1)


# Readers


def test_readers_of_committed_records_are_not_woken_by_batches_of_open_transactions() -> None:
    world = World()
    world.write(1)
    waiting = world.fetch()
    assert isinstance(waiting, Deferred)
    for _ in range(3):
        world.write(1)
        world.plain()
        world.node.clock.advance(0)
    assert not has_fired(waiting)
    world.end(1)
    world.node.clock.advance(0)
    (fetched,) = outcome(waiting)
    assert fetched.size_bytes == 4 * SIZE + 3 * PLAIN_SIZE + MARKER_BYTES
    release_unsent([fetched])
    assert not world.partition.watchers.read_committed


def test_min_bytes_count_what_became_stable() -> None:
    world = World()
    waiting = world.fetch(min_bytes=2 * PLAIN_SIZE + SIZE + MARKER_BYTES)
    assert isinstance(waiting, Deferred)
    world.plain()
    world.write(1)
    world.end(1)
    world.node.clock.advance(0)
    assert not has_fired(waiting)
    world.plain()
    world.node.clock.advance(0)
    fetched = outcome(waiting)
    release_unsent(fetched)


def test_what_was_stable_before_does_not_count_for_who_waits() -> None:
    world = World()
    for _ in range(3):
        world.plain()
    waiting = world.fetch(3, min_bytes=2 * PLAIN_SIZE)
    assert isinstance(waiting, Deferred)
    for number in range(2):
        world.plain()
        world.node.clock.advance(0)
        assert has_fired(waiting) is (number == 1)
    fetched = outcome(waiting)
    release_unsent(fetched)


def test_a_new_segment_does_not_hide_what_became_stable() -> None:
    world = World(config=SMALL)
    world.write(1)
    world.write(1)
    waiting = world.fetch(min_bytes=PLAIN_SIZE)
    assert isinstance(waiting, Deferred)
    world.write(1)
    world.end(1)
    world.node.work()
    world.node.clock.advance(0)
    (fetched,) = outcome(waiting)
    assert fetched.size_bytes == 2 * SIZE
    fetched.release()


def test_who_reads_where_nothing_is_stable_yet_gets_nothing() -> None:
    world = World()
    world.write(1)
    world.write(1)
    assert world.read(1) == (0, [])
    assert world.read(2) == (0, [])
    with pytest.raises(KafkaError):
        world.partition.read(3, 100, at_least_one_batch=True, committed=True)


def test_aborted_transactions_are_told_where_they_overlap_in_the_order_of_their_ends() -> None:
    world = World()
    for producer_id in (1, 2, 3):
        world.write(producer_id)
    world.end(2, commit=False)
    world.end(1, commit=False)
    world.end(3)
    world.plain()
    assert world.read(0)[1] == [(2, 1), (1, 0)]
    assert world.read(4)[1] == [(1, 0)]
    assert world.read(5)[1] == []


def test_times_are_found_where_everything_is_decided() -> None:
    world = World()
    world.plain()
    world.node.clock.advance(1)
    world.write(1)
    time_ms = world.node.now_ms
    searches = [world.partition.find_timestamp(time_ms, committed=committed) for committed in (True, False)]
    searches += [world.partition.find_max_timestamp(committed=committed) for committed in (True, False)]
    world.node.work()
    assert [record and record.offset for record in map(outcome, searches)] == [None, 1, None, 1]


# Beginnings and ends


def test_after_a_start_the_disk_knows_where_the_first_open_transaction_begins() -> None:
    world = World(config=SMALL)
    world.plain()
    world.write(1)
    for _ in range(4):
        world.plain()
    after = world.restarted()
    assert after.ends == (6, 1)
    with pytest.raises(ColdDataError):
        after.partition.read(0, 1000, at_least_one_batch=True, committed=True)
    assert after.read(0) == (PLAIN_SIZE, [])
    after.end(1, commit=False)
    after.node.work()
    assert after.ends == (7, 7)
    assert after.read(1)[1] == [(1, 1)]


def test_after_a_crash_nothing_open_is_shown_and_nothing_aborted_is_hidden() -> None:
    world = World(config=SMALL)
    for producer_id in (1, 2, 1):
        world.write(producer_id)
        world.node.work()
    world.end(1, commit=False)
    world.node.work()
    after = world.killed()
    assert after.ends == (4, 1)
    assert after.read() == (SIZE, [(1, 0)])


INDEX = "/a/t-0/00000000000000000000.txnindex"


def with_rotten_index(rot: Callable[[bytes], bytes], *paths: str) -> World:
    """Two transactions of one producer were aborted, and what a sealed segment says of that has changed on the disk."""
    world = World(*paths, config=LogConfig(segment_bytes=600))
    for _ in range(2):
        world.write(1)
        world.end(1, commit=False)
    for _ in range(6):
        world.plain()
    world.node.work()
    for directory, logs in world.node.replicas.logs_by_directory():
        directory.storage.close(logs)
    files = world.node.files
    assert files.size(INDEX) == 68
    rotten = rot(files.read(INDEX))
    file = files.open(INDEX)
    file.truncate(0)
    file.append((rotten,), len(rotten))
    file.close()
    after = World.__new__(World)
    after.node, after._sequences = world.node.next_process(), world._sequences
    after.node.open(topic())
    return after


@pytest.mark.parametrize(
    "rot",
    [
        lambda data: data + b"rot",
        lambda data: data[34:] + data[:34],
        lambda data: data[:10] + b"\1" + data[11:],
        lambda data: data[:26] + b"\1" + data[27:],
    ],
)
def test_an_index_that_has_rotted_is_built_again(rot: Callable[[bytes], bytes]) -> None:
    world = with_rotten_index(rot)
    assert world.read()[1] == [(1, 0), (1, 2)]
    assert world.node.files.size(INDEX) == 68


def test_a_log_that_begins_behind_an_open_transaction_is_stable_up_to_there() -> None:
    world = World()
    world.write(1)
    world.plain()
    saving = world.node.replicas.delete_records(world.partition, 2)
    world.node.work()
    assert outcome(saving) == 2
    world.plain()
    assert world.ends == (3, 2)
    assert world.read(2) == (0, [])
    world.end(1)
    assert world.ends == (4, 4)


def test_transactions_move_along_with_their_partition() -> None:
    world = World("/a", "/b")
    world.write(1)
    world.end(1, commit=False)
    world.write(2)
    moving = world.node.replicas.move("t", 0, "/b")
    while not has_fired(moving):
        world.node.work()
        world.node.clock.advance(1)
    assert home(world.node) == "/b"
    assert world.ends == (3, 2)
    assert world.read() == (SIZE + MARKER_BYTES, [(1, 0)])
    world.end(2, commit=False)
    assert world.read()[1] == [(1, 0), (2, 2)]


def test_an_index_that_has_rotted_is_built_again_before_it_moves() -> None:
    world = with_rotten_index(lambda data: data + b"rot", "/a", "/b")
    world.node.replicas.move("t", 0, "/b")
    world.node.work()
    assert [directory.offline for directory in world.node.directories] == [False, False]
    assert home(world.node) == "/b"
    assert world.read()[1] == [(1, 0), (1, 2)]
