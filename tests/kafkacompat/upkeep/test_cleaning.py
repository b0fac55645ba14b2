"""Compaction by the clock: which log is next, what it waits for, and what makes it give up."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.files.filesystem import DiskUsage
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.producer import Producer
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.storage.segment.segment_files import TXN_INDEX_SUFFIX
from kafkacompat.storage.segment.transaction_index import read_aborted
from kafkacompat.upkeep.cleaning import LogCleaner
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import NewRecord, build_batch, read_records
from kafkacompat.workers.processes import CodeReplacedError
from tests.fakes.disk import ManualDisk
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.partitions.node import Node, topic

BACKOFF_S = 15
COMPACTED = frozenset({"compact"})


class World:
    """A node whose logs are compacted, by workers that work when a test says so.

    What is appended goes to segments of `roll_bytes`; compaction may make larger ones.
    """

    def __init__(
        self,
        *paths: str,
        properties: dict[str, str] | None = None,
        roll_bytes: int = 300,
        reserve_bytes: int = 0,
        **config: Any,
    ) -> None:
        self.roll_bytes = roll_bytes
        values: dict[str, Any] = {"cleanup_policy": COMPACTED, **config}
        self.node = Node(*paths, config=LogConfig(**values), reserve_bytes=reserve_bytes)
        self.config = BrokerConfig({"node.id": "1", **(properties or {})})
        self.housekeeping = Housekeeping(self.node.clock, self.config, self.node.replicas)
        self.workers = ManualWorkers(ManualDisk())
        self.cleaner = LogCleaner(
            self.housekeeping, self.node.moves, self.workers, self.node.files, lambda: self.config
        )

    @property
    def files(self) -> MemoryFiles:
        return self.node.files

    def open(self, name: str = "t") -> Partition:
        self.node.open(topic(name, topic_id=name.encode() * 16))
        return self.node.replicas.find(name, 0)

    def put(self, partition: Partition, *keys: str, value: str | None = "v" * 50) -> None:
        """Append a batch of one record for each key."""
        config = partition.log.config
        partition.log.config = replace(config, segment_bytes=self.roll_bytes)
        for key in keys:
            record: NewRecord = (self.node.now_ms, key.encode(), None if value is None else value.encode(), [])
            partition.append(build_batch([record]), self.node.now_ms)
            self.node.work()
        partition.log.config = config

    def step(self) -> None:
        """Let each disk and worker do one thing, if there is any."""
        for disk in (*self.node.disks, self.workers.disk):
            if disk.waiting:
                disk.waiting.popleft()()

    def work(self, seconds: float = 0) -> None:
        """Let time pass, and everybody do what waits."""
        self.node.clock.advance(seconds)
        while any(disk.waiting for disk in (*self.node.disks, self.workers.disk)):
            self.step()

    def keys(self, partition: Partition) -> str:
        """The keys of all records in their order."""
        keys = ""
        for data in batches_of(partition):
            keys += "".join((record.key or b"-").decode() for record in read_records(data))
        return keys

    def names(self) -> list[str]:
        return self.files.list("/a/t-0")


def batches_of(partition: Partition) -> list[bytes]:
    batches = []
    offset = partition.log.log_start_offset
    while offset < partition.log.log_end_offset:
        region = partition.log.read(offset, 1)
        if region is None:
            break
        batches.append(region.pread(0, region.size_bytes))
        region.release()
        offset = int.from_bytes(batches[-1][:8], "big") + int.from_bytes(batches[-1][23:27], "big") + 1
    return batches


def test_a_dirty_log_is_compacted_after_the_backoff_and_the_checkpoint_says_so() -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    world.cleaner.start()
    world.work(BACKOFF_S - 1)
    assert world.keys(partition) == "aaabaaacaaa"
    world.work(1)
    compacted_to = partition.log.segments.active.base_offset
    assert world.keys(partition) == "bca" + "a" * (11 - compacted_to)
    saved = world.files.read("/a/cleaner-offset-checkpoint").decode().split("\n")
    assert saved == ["0", "1", f"t 0 {compacted_to}", ""]
    assert world.workers.calls == ["compact"]
    assert [name for name in world.names() if not name.endswith(".deleted")] == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        *(f"{compacted_to:020}.{suffix}" for suffix in ("index", "log", "snapshot", "timeindex")),
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    world.work(partition.log.config.file_delete_delay_ms / 1000)
    assert not any(name.endswith(".deleted") for name in world.names())


def test_a_transaction_index_that_has_rotted_is_built_again() -> None:
    world = World(roll_bytes=1000)
    partition = world.open()
    world.put(partition, "a")
    aborted = build_batch(
        [(world.node.now_ms, b"a", b"aborted", [])],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    partition.append(aborted, world.node.now_ms, guard=NOT_VERIFIED)
    partition.append_marker(Marker(1, 0, 0, False, 0), world.node.now_ms)
    partition.roll()
    world.work()
    segment = partition.log.segments[0]
    segment.transactions.loaded = None
    path = segment.files.path(TXN_INDEX_SUFFIX)
    world.files.open(path).append((b"rot",), 3)
    world.cleaner.start()
    world.work(BACKOFF_S)
    # The aborted record has gone, the marker's key is in its place; its batch stays, as its producer's last.
    assert world.keys(partition) == "a" + "\0" * 4
    assert len(read_aborted(world.files, path)) == 1


def test_a_transaction_index_that_is_being_written_is_read_again_later(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaaaa")
    index = world.files.open(partition.log.segments.active.files.path(TXN_INDEX_SUFFIX), create=True)
    index.append((bytes(20),), 20)
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert "cannot be compacted now" in caplog.text
    assert world.keys(partition) == "aaaaa"
    index.append((bytes(14),), 14)
    world.work(BACKOFF_S)
    assert len(world.keys(partition)) < 5


def test_a_log_is_known_to_be_compacted_before_it_has_gaps() -> None:
    """Or those that a crash leaves would look like a loss."""
    world = World()
    world.put(world.open(), *"aaabaaacaaa")
    swapped: list[bool] = []

    def note(_: str) -> None:
        if any(name.endswith(".swap") for name in world.names()):
            swapped.append("cleaner-offset-checkpoint" in world.node.names("a"))

    world.files.before_change = note
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert swapped
    assert all(swapped)


def test_a_restart_continues_after_the_compacted_segments() -> None:
    world = World()
    world.put(world.open(), *"aabaacaa")
    world.cleaner.start()
    world.work(BACKOFF_S)
    offset = world.node.replicas.find("t", 0).log.cleaner_offset
    assert offset
    again = world.node.restart(topic("t", topic_id=b"t" * 16))
    assert again.replicas.find("t", 0).log.cleaner_offset == offset


def test_nothing_is_done_with_log_cleaner_enable_false() -> None:
    world = World(properties={"log.cleaner.enable": "false"})
    world.put(world.open(), *"aaaaaaaa")
    world.cleaner.start()
    world.work(100 * BACKOFF_S)
    assert world.workers.calls == []


def test_a_log_waits_until_enough_of_it_is_dirty() -> None:
    world = World(min_cleanable_dirty_ratio=0.5)
    partition = world.open()
    world.put(partition, *"abcdefghij")
    world.cleaner.start()
    world.work(BACKOFF_S)
    world.put(partition, *"aaaa")
    before = world.keys(partition)
    world.work(BACKOFF_S)
    assert world.keys(partition) == before
    world.put(partition, *"abcdabcdabcd")
    world.work(BACKOFF_S)
    assert len(world.keys(partition)) < len(before)
    assert len(world.workers.calls) == 2


def test_a_log_is_compacted_on_demand_though_it_is_not_due() -> None:
    world = World(min_cleanable_dirty_ratio=1)
    partition = world.open()
    world.put(partition, *"abcabcabc")
    done: list[object] = []
    world.cleaner.compact_now(partition).addCallback(done.append)
    # The second call waits for the first, and has nothing left to do.
    world.cleaner.compact_now(partition).addCallback(done.append)
    assert done == []
    world.work()
    assert done == [None, None]
    assert len(world.keys(partition)) < 9
    assert world.workers.calls == ["compact"]


def test_the_dirtiest_is_the_first() -> None:
    world = World(min_cleanable_dirty_ratio=0.1)
    first, second = world.open("t"), world.open("u")
    world.put(first, *"abcdefghijabcdefghij")
    world.cleaner.start()
    world.work(BACKOFF_S)
    world.put(first, *"aaaaaa")
    world.put(second, *"aaaaaa")
    order: list[Partition] = []
    for _ in range(50):
        world.node.clock.advance(BACKOFF_S)
        world.step()
        order += [log for log in (first, second) if world.cleaner.is_cleaning(log) and log not in order]
    assert order == [second, first]


def test_records_younger_than_min_compaction_lag_stay() -> None:
    world = World(min_compaction_lag_ms=60_000)
    partition = world.open()
    world.put(partition, *"aaaaaa")
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.keys(partition) == "aaaaaa"
    world.work(60)
    world.work(BACKOFF_S)
    assert len(world.keys(partition)) < 6


def test_records_older_than_max_compaction_lag_are_compacted() -> None:
    world = World(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=60_000)
    partition = world.open()
    world.put(partition, *"aaaaaa")
    # A restart has to look into the segments for their first timestamps.
    for segment in partition.log.segments:
        segment.first_timestamp = -1 if segment.sealed else segment.first_timestamp
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.workers.calls == []
    world.work(60)
    world.work(BACKOFF_S)
    assert world.workers.calls == ["compact"]


def test_a_log_with_an_undecided_transaction_lets_the_others_go_first() -> None:
    world = World()
    undecided, other = world.open("t"), world.open("u")
    world.put(undecided, *"aaaaaaaa")
    world.put(other, *"bbbbbbbb")
    producers, producer = undecided.log.producer_state.producers, Producer(7)
    producer.current_txn_first_offset = 1
    producers[7] = producer
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.keys(undecided) == "aaaaaaaa"
    assert len(world.keys(other)) < 8
    producer.current_txn_first_offset = -1
    producers[7] = producer
    world.work(BACKOFF_S)
    assert len(world.keys(undecided)) < 8


def test_max_compaction_lag_ends_a_segment_too() -> None:
    world = World(max_compaction_lag_ms=60_000, roll_bytes=1 << 20)
    partition = world.open()
    world.put(partition, "a")
    world.work(61)
    world.put(partition, "a")
    assert len(partition.log.segments) == 2


def test_as_many_logs_at_a_time_as_there_are_threads() -> None:
    world = World(properties={"log.cleaner.threads": "2"})
    partitions = [world.open(name) for name in "tuv"]
    for partition in partitions:
        world.put(partition, *"aaaaaa")
    world.cleaner.start()
    world.node.clock.advance(BACKOFF_S)
    assert sum(map(world.cleaner.is_cleaning, partitions)) == 2
    world.work()
    assert all(len(world.keys(partition)) < 6 for partition in partitions)


def test_the_cleaner_keeps_to_its_throttle() -> None:
    world = World(properties={"log.cleaner.io.max.bytes.per.second": "1048576.0"}, roll_bytes=1 << 21)
    partition = world.open()
    for number in range(5):
        world.put(partition, "abcde"[number], value="v" * 1_000_000)
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.cleaner.is_cleaning(partition)
    for _ in range(10):
        world.work(1)
    assert world.cleaner.is_cleaning(partition)
    for _ in range(5):
        world.work(1)
    assert partition.log.cleaner_offset == 4


# Others who want something of the log


def until_cleaning(world: World, partition: Partition, steps: int) -> None:
    """Begin to compact, and stop some steps later."""
    world.cleaner.start()
    world.node.clock.advance(BACKOFF_S)
    for _ in range(steps):
        world.step()
    assert world.cleaner.is_cleaning(partition)


STEPS = range(8)


@pytest.mark.parametrize("steps", STEPS)
def test_a_stop_leaves_a_whole_log_and_nothing_under_way(steps: int, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    until_cleaning(world, partition, steps)
    done: list[object] = []
    Deferred.fromCoroutine(world.cleaner.stop()).addCallback(done.append)
    world.work()
    assert done == [None]
    assert world.workers.closed
    keys = world.keys(partition)
    assert set(keys) == {"b", "c", "a"}
    assert not any("cleaned" in name or "swap" in name for name in world.names())
    again = world.node.restart(topic("t", topic_id=b"t" * 16)).replicas.find("t", 0)
    assert world.keys(again) == keys
    world.work(60)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_stop_does_not_wait_for_a_step() -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    until_cleaning(world, partition, 1)
    done: list[object] = []
    Deferred.fromCoroutine(world.cleaner.stop()).addCallback(done.append)
    assert world.workers.closed
    world.work()
    assert done == [None]
    assert world.keys(partition) == "aaabaaacaaa"


@pytest.mark.parametrize("steps", STEPS)
def test_a_deleted_partition_ends_its_compaction(steps: int, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    until_cleaning(world, partition, steps)
    world.node.replicas.delete_partitions(topic("t", topic_id=b"t" * 16))
    world.work()
    assert not world.cleaner.is_cleaning(partition)
    assert caplog.records == []
    world.work(60)
    assert "t-0" not in world.files.list("/a")
    assert not any(name.endswith("-delete") for name in world.files.list("/a"))


@pytest.mark.parametrize("steps", STEPS)
def test_a_move_waits_until_the_compaction_is_given_up(steps: int) -> None:
    world = World("/a", "/b")
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    until_cleaning(world, partition, steps)
    begun: list[object] = []
    world.node.replicas.move("t", 0, "/b").addCallback(begun.append)
    assert begun == []
    world.work()
    assert begun == [None]
    assert partition.log.directory == "/b/t-0"
    assert set(world.keys(partition)) == {"b", "c", "a"}
    world.work(BACKOFF_S)
    world.work(BACKOFF_S)
    assert world.keys(partition)[:2] == "bc"
    assert "t 0" in world.files.read("/b/cleaner-offset-checkpoint").decode()


@pytest.mark.parametrize("steps", STEPS[:2])
def test_nothing_is_dropped_any_more_once_the_policy_has_compact_no_longer(steps: int) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    until_cleaning(world, partition, steps)
    keys = world.keys(partition)
    partition.log.config = replace(partition.log.config, cleanup_policy=frozenset({"delete"}))
    world.work()
    assert world.keys(partition) == keys
    assert not world.cleaner.is_cleaning(partition)
    assert not any("cleaned" in name for name in world.names())
    partition.log.config = replace(partition.log.config, cleanup_policy=COMPACTED)
    world.work(BACKOFF_S)
    assert world.keys(partition)[:2] == "bc"


def test_leftovers_of_a_compaction_are_removed_first() -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    left = "00000000000000000003.log.cleaned"
    world.files.open(f"/a/t-0/{left}", create=True).close()
    until_cleaning(world, partition, 1)
    assert left not in world.names()
    world.work()


def test_retention_takes_nothing_until_the_compaction_is_over() -> None:
    world = World(cleanup_policy=frozenset({"compact", "delete"}), retention_ms=60_000)
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    world.work(61)
    until_cleaning(world, partition, 3)
    world.housekeeping.delete_expired_segments()
    world.node.work()
    assert partition.log.segments[0].base_offset == 0
    world.work()
    assert partition.log.segments[0].base_offset > 0


def test_readers_of_a_replaced_segment_read_on() -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    region = partition.log.read(0, 1 << 20)
    assert region is not None
    before = region.pread(0, region.size_bytes)
    world.cleaner.start()
    world.work(BACKOFF_S)
    world.work(60)
    assert region.pread(0, region.size_bytes) == before
    region.release()


# What goes wrong


def flip_bit(world: World, name: str) -> None:
    """Change a bit in the middle of a file."""
    file = world.files.open(name)
    data = bytearray(file.pread(file.size(), 0))
    data[len(data) // 2] ^= 1
    file.truncate(0)
    file.append((bytes(data),), len(data))


def test_a_damaged_log_is_skipped_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    partition, other = world.open(), world.open("u")
    world.put(partition, *"aaabaaacaaa")
    world.put(other, *"aaaaaa")
    flip_bit(world, "/a/t-0/00000000000000000000.log")
    world.cleaner.start()
    for _ in range(5):
        world.work(BACKOFF_S)
    assert world.workers.calls == ["compact"] * 2
    assert len(world.keys(other)) < 6
    assert not any("cleaned" in name for name in world.names())
    reported, remembered = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert "00000000000000000000.log begins no sound batch" in reported
    assert "00000000000000000000.log is damaged" in remembered and list(partition.log.examiner.corrupt) == [0]


def test_a_full_disk_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    world.files.fail_on("append", errno.ENOSPC)
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.keys(partition) == "aaabaaacaaa"
    assert not any("cleaned" in name for name in world.names())
    assert "No space left" in caplog.text
    world.work(BACKOFF_S)
    assert world.keys(partition)[:2] == "bc"
    assert not partition.closed


@pytest.mark.parametrize(("free_bytes", "is_compacted"), [(50_000_000, True), (49_999_999, False)])
def test_half_of_the_reserve_is_left_to_others(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int, is_compacted: bool
) -> None:
    world = World(roll_bytes=1 << 20, reserve_bytes=100_000_000)
    partition = world.open()
    world.put(partition, *"aaaa", value="v" * 600_000)
    monkeypatch.setattr(world.files, "disk_usage", lambda _: DiskUsage(1 << 40, free_bytes))
    world.cleaner.start()
    for _ in range(3):
        world.work(BACKOFF_S)
    assert (len(world.keys(partition)) < 4) is is_compacted
    assert not any("cleaned" in name for name in world.names())
    assert not partition.closed


@pytest.mark.parametrize("operation", ["append", "sync", "pread"])
def test_a_failing_disk_takes_its_directory_offline(operation: str) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    world.files.fail_on(operation, errno.EIO)
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert partition.closed
    assert world.node.directories[0].offline
    assert not world.cleaner.is_cleaning(partition)


@pytest.mark.parametrize(
    "problem",
    [
        KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the process for compaction died"),
        MemoryError("there are no 1000 bytes for the keys of a compaction"),
    ],
)
def test_a_worker_that_dies_or_wants_memory_is_tried_again(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    call: Callable[..., Any] = world.workers.call

    def die(*_: Any) -> Any:
        monkeypatch.setattr(world.workers, "call", call)
        raise problem

    monkeypatch.setattr(world.workers, "call", die)
    world.cleaner.start()
    world.work(BACKOFF_S)
    assert world.keys(partition) == "aaabaaacaaa"
    world.work(BACKOFF_S)
    assert world.keys(partition)[:2] == "bc"


def test_without_workers_of_the_same_code_each_log_waits_for_the_next_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    partition = world.open()
    world.put(partition, *"aaabaaacaaa")
    refused = []

    def refuse(*_: Any) -> Any:
        refused.append(1)
        raise CodeReplacedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "restart it")

    monkeypatch.setattr(world.workers, "call", refuse)
    world.cleaner.start()
    for _ in range(5):
        world.work(BACKOFF_S)
    assert len(refused) == 1
    assert world.keys(partition) == "aaabaaacaaa"
    assert caplog.messages == []
