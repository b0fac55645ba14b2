"""Fetches over several partitions: limits, waiting, and cold data."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from kafkacompat.partitions.fetch_sessions import WantedPartition
from kafkacompat.partitions.fetching import (
    MAX_WARMED,
    FetchedPartition,
    FetchLimits,
    fetch_partitions,
    read_partitions,
    release_unsent,
)
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.reader import LogReader
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.storage.segment.region_search import FoundRegion
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.busy_clock import LOOKS_A_TURN, BusyClock
from tests.kafkacompat.partitions.node import Node, topic
from tests.kafkacompat.partitions.partitions import NOW_MS, World, batch

SIZE = len(batch())


class Cluster:
    def __init__(self, folder: Path, count: int = 2) -> None:
        self.clock = Clock()
        self.worlds = [World(folder, index=index) for index in range(count)]

    def find(self, wanted: WantedPartition) -> Partition:
        if wanted.partition >= len(self.worlds):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.worlds[wanted.partition].partition

    def fetch(
        self, offsets: list[int], *, min_bytes: int = 1, max_wait_ms: int = 500
    ) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        wanted = [WantedPartition("t", index, offset, 1_000_000) for index, offset in enumerate(offsets)]
        return fetch_partitions(self.find, wanted, FetchLimits(min_bytes, 10_000_000, max_wait_ms), self.clock)


def limit(max_bytes: int, *, one_batch_each: bool = False) -> FetchLimits:
    return FetchLimits(1, max_bytes, 0, one_batch_each)


def measured(fetched: list[FetchedPartition]) -> list[int]:
    result = [partition.size_bytes for partition in fetched]
    release_unsent(fetched)
    return result


def arrived(waiting: object) -> list[list[int]]:
    assert isinstance(waiting, Deferred)
    results: list[list[int]] = []
    waiting.addCallback(lambda fetched: results.append(measured(fetched)))
    return results


def test_what_is_there_is_answered_at_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.worlds[1].append()
    fetched = cluster.fetch([0, 0])
    assert isinstance(fetched, list)
    assert measured(fetched) == [0, SIZE]


def test_nothing_is_answered_when_time_is_up(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    results = arrived(cluster.fetch([0, 0]))
    cluster.clock.advance(0.499)
    assert results == []
    cluster.clock.advance(0.001)
    assert results == [[0, 0]]
    assert not cluster.worlds[0].partition.watchers.read_uncommitted


def test_the_batches_of_one_turn_are_answered_together(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    results = arrived(cluster.fetch([0, 0]))
    cluster.worlds[0].append()
    cluster.worlds[1].append()
    assert results == []
    cluster.clock.advance(0)
    assert results == [[SIZE, SIZE]]
    cluster.clock.advance(1)
    assert len(results) == 1


def test_min_bytes_count_over_all_partitions_and_what_was_there_before(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.worlds[0].append()
    results = arrived(cluster.fetch([0, 0], min_bytes=3 * SIZE))
    cluster.worlds[1].append()
    cluster.clock.advance(0)
    assert results == []
    cluster.worlds[1].append()
    cluster.clock.advance(0)
    assert results == [[SIZE, 2 * SIZE]]


def test_an_error_does_not_wait(tmp_path: Path) -> None:
    fetched = Cluster(tmp_path).fetch([0, 0, 0])
    assert isinstance(fetched, list)
    assert [partition.error_code for partition in fetched] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_partition_that_goes_away_ends_the_waiting(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    results = arrived(cluster.fetch([0, 0]))
    cluster.worlds[0].partition.close_to_clients(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    cluster.clock.advance(0)
    assert len(results) == 1


def test_giving_up_leaves_nothing_behind(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    waiting = cluster.fetch([0, 0])
    assert isinstance(waiting, Deferred)
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    assert cluster.clock.getDelayedCalls() == []
    assert not cluster.worlds[0].partition.watchers.read_uncommitted


def test_only_the_first_batch_may_be_larger_than_the_limit(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for world in cluster.worlds:
        world.append()
    wanted = [WantedPartition("t", index, 0, 1_000_000) for index in range(2)]
    assert measured(list(read_partitions(cluster.find, wanted, limit(10)))) == [SIZE, 0]
    assert measured(list(read_partitions(cluster.find, wanted, limit(SIZE + 10)))) == [SIZE, 0]
    assert measured(list(read_partitions(cluster.find, wanted, limit(2 * SIZE)))) == [SIZE, SIZE]


def test_every_batch_may_be_larger_than_its_partitions_limit_until_nothing_is_left_of_that_of_all(
    tmp_path: Path,
) -> None:
    cluster = Cluster(tmp_path, count=3)
    for world in cluster.worlds:
        world.append()
    wanted = [WantedPartition("t", index, 0, 10) for index in range(3)]
    assert measured(list(read_partitions(cluster.find, wanted, limit(10 * SIZE, one_batch_each=True)))) == [SIZE] * 3
    assert measured(list(read_partitions(cluster.find, wanted, limit(2 * SIZE, one_batch_each=True)))) == [
        SIZE,
        SIZE,
        0,
    ]


def test_the_limit_of_one_partition_holds_too(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for _ in range(3):
        cluster.worlds[0].append()
    wanted = [WantedPartition("t", 0, 0, 2 * SIZE + 10)]
    assert measured(list(read_partitions(cluster.find, wanted, limit(1_000_000)))) == [2 * SIZE + 10]


def test_cold_data_is_fetched_from_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(tmp_path, 1)
    world = cluster.worlds[0]
    world.append()
    find, cold = LogReader.find_region, [True]

    def find_or_raise(
        reader: LogReader, offset: int, max_bytes: int, upper: OffsetPosition, at_least_one_batch: bool, may_block: bool
    ) -> FoundRegion | None:
        if not may_block and cold[0]:
            raise ColdDataError
        cold[0] = False
        return find(reader, offset, max_bytes, upper, at_least_one_batch, may_block)

    monkeypatch.setattr(LogReader, "find_region", find_or_raise)
    results = arrived(cluster.fetch([0]))
    assert results == []
    world.disk.work()
    assert results == [[SIZE]]


def test_appending_while_a_fetch_waits_costs_no_file(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    results = arrived(cluster.fetch([0], min_bytes=10 * SIZE))
    for _ in range(9):
        cluster.worlds[0].partition.append(batch(), NOW_MS)
        cluster.clock.advance(0)
    assert results == []


def test_many_partitions_are_read_in_several_turns(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=3 * LOOKS_A_TURN)
    cluster.clock = busy = BusyClock()  # type: ignore[assignment]
    cluster.worlds[-1].append()
    results = arrived(cluster.fetch([0] * len(cluster.worlds)))
    assert results == []
    busy.turns()
    assert results == [[0] * (len(cluster.worlds) - 1) + [SIZE]]


def test_what_arrives_while_many_partitions_are_read_ends_the_waiting(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, count=3 * LOOKS_A_TURN)
    cluster.clock = busy = BusyClock()  # type: ignore[assignment]
    results = arrived(cluster.fetch([0] * len(cluster.worlds)))
    cluster.worlds[0].append()
    while not cluster.worlds[0].partition.watchers.read_uncommitted:
        busy.turn()
    busy.turns()
    assert results[0][0] == SIZE


def test_giving_up_while_many_partitions_are_read_leaks_no_file() -> None:
    cold = ColdCluster(3)
    for partition in cold.node.replicas:
        partition.log.reader.warm(0)
    wanted = [WantedPartition("t", index % 3, 0, 1_000_000) for index in range(3 * LOOKS_A_TURN)]
    waiting = fetch_partitions(cold.find, wanted, FetchLimits(1, 10_000_000, 500), BusyClock())
    assert isinstance(waiting, Deferred)
    waiting.addErrback(lambda failure: failure.trap(CancelledError))
    waiting.cancel()
    cold.unload()
    assert cold.node.files.open_handles == cold.idle_handles


class ColdCluster:
    """Partitions whose sealed segments are closed, so that the disk has to be asked where a batch is."""

    def __init__(self, count: int) -> None:
        self.node = Node(config=LogConfig(segment_bytes=len(Node().batch())))
        self.node.open(topic("t", count))
        for partition in self.node.replicas:
            for _ in range(2):
                self.node.append(partition)
            partition.log.segments[0].unload()
        self.idle_handles = self.node.files.open_handles

    def find(self, wanted: WantedPartition) -> Partition:
        return self.node.replicas.find(wanted.topic, wanted.partition)

    def fetch(self, count: int, *, min_bytes: int = 1) -> list[FetchedPartition] | Deferred[list[FetchedPartition]]:
        """Fetch the first batch of each of *count* partitions."""
        wanted = [WantedPartition("t", index, 0, 1_000_000) for index in range(count)]
        return fetch_partitions(self.find, wanted, FetchLimits(min_bytes, 10_000_000, 500), self.node.clock)

    def unload(self) -> None:
        """Close every sealed segment."""
        for partition in self.node.replicas:
            partition.log.segments[0].unload()


def test_one_fetch_looks_up_so_many_cold_partitions_and_answers_with_what_it_has() -> None:
    cold = ColdCluster(MAX_WARMED + 2)
    results = arrived(cold.fetch(MAX_WARMED + 2))
    assert sum(len(disk.waiting) for disk in cold.node.disks) == MAX_WARMED
    cold.node.work()
    assert [[bool(size) for size in sizes] for sizes in results] == [[True] * MAX_WARMED + [False] * 2]


def test_what_is_still_cold_after_the_look_up_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cold = ColdCluster(1)
    monkeypatch.setattr(LogReader, "warm", lambda _reader, _offset: None)
    results = arrived(cold.fetch(1, min_bytes=10_000))
    cold.node.work()
    assert results == [[0]]
    assert cold.node.clock.getDelayedCalls() == []


def test_too_little_after_the_look_up_waits_for_more() -> None:
    cold = ColdCluster(1)
    results = arrived(cold.fetch(1, min_bytes=10_000))
    cold.node.work()
    assert results == []
    # It waits without a file in its hand.
    cold.unload()
    assert cold.node.files.open_handles == cold.idle_handles
    cold.node.replicas.find("t", 0).log.reader.warm(0)
    cold.node.clock.advance(0.5)
    assert [[bool(size) for size in sizes] for sizes in results] == [[True]]


def test_giving_up_while_the_disk_is_asked_leaks_no_file() -> None:
    cold = ColdCluster(2)
    waiting = cold.fetch(2)
    assert isinstance(waiting, Deferred)
    waiting.addErrback(lambda failure: failure.trap(CancelledError))
    waiting.cancel()
    cold.node.work()
    assert cold.node.clock.getDelayedCalls() == []
    cold.unload()
    assert cold.node.files.open_handles == cold.idle_handles


def test_what_is_warm_of_a_fetch_with_cold_partitions_is_not_held_open_twice() -> None:
    cold = ColdCluster(2)
    cold.node.replicas.find("t", 0).log.reader.warm(0)
    results = arrived(cold.fetch(2))
    cold.node.work()
    assert len(results) == 1 and all(results[0])
    cold.unload()
    assert cold.node.files.open_handles == cold.idle_handles


def test_a_look_up_that_fails_for_a_passing_reason_is_told_as_an_error() -> None:
    cold = ColdCluster(2)
    cold.node.files.fail_on("open", errno.EMFILE)
    waiting = cold.fetch(2)
    assert isinstance(waiting, Deferred)
    results: list[list[tuple[ErrorCode, bool]]] = []
    waiting.addCallback(
        lambda fetched: results.append([(partition.error_code, bool(partition.size_bytes)) for partition in fetched])
    )
    cold.node.work()
    assert results == [[(ErrorCode.KAFKA_STORAGE_ERROR, False), (ErrorCode.NONE, True)]]
    assert not cold.node.directories[0].offline


def test_a_look_up_that_fails_takes_the_directory_offline() -> None:
    cold = ColdCluster(2)
    cold.node.files.fail_on("open", errno.EIO)
    waiting = cold.fetch(2)
    assert isinstance(waiting, Deferred)
    results: list[list[ErrorCode]] = []
    waiting.addCallback(lambda fetched: results.append([partition.error_code for partition in fetched]))
    cold.node.work()
    assert results == [[ErrorCode.KAFKA_STORAGE_ERROR] * 2]
    assert cold.node.directories[0].offline
