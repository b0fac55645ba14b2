"""What happens to the logs by the clock, from retention to checkpoints."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.directory.checkpoints import HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS
from kafkacompat.storage.files.checkpoints import read_offsets
from kafkacompat.storage.log.log import OffsetPosition
from kafkacompat.storage.log.trimmer import LogTrimmer
from kafkacompat.storage.log_config import LONG_MAX, LogConfig
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.upkeep import idle_producers
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.partitions.node import Node, topic

BATCH_BYTES = len(Node().batch())
HOUR_MS = 3_600_000

# Every batch has a segment of its own.
SHORT = LogConfig(segment_bytes=BATCH_BYTES, retention_ms=HOUR_MS, file_delete_delay_ms=7000)


class World:
    """A node with the partition t-0 and what is done to it; the intervals that a test does not give are Kafka's."""

    def __init__(self, config: LogConfig = SHORT, **intervals: str) -> None:
        self.node = Node(config=config)
        self.node.open(topic())
        given = {"node.id": "1", **{name.replace("_", "."): value for name, value in intervals.items()}}
        self.housekeeping = Housekeeping(self.node.clock, BrokerConfig(given), self.node.replicas)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find("t", 0)

    def fill(self, count: int, apart_s: int = 0) -> None:
        for _ in range(count):
            self.node.append(self.partition)
            self.node.clock.advance(apart_s)

    def offsets(self) -> list[int]:
        """Where the segments begin."""
        return [segment.base_offset for segment in self.partition.log.segments]

    def logs(self) -> list[str]:
        """The log files on the disk."""
        return [name.lstrip("0") for name in self.node.names("a", "t-0") if ".log" in name]

    def clean(self) -> None:
        """One round of retention."""
        self.housekeeping.delete_expired_segments()
        self.node.work()

    def checkpointed(self, name: str) -> dict[tuple[str, int], int]:
        return read_offsets(self.node.files, f"/a/{name}")


# Retention


def test_segments_older_than_retention_ms_go() -> None:
    world = World()
    world.fill(4, apart_s=1200)
    world.clean()
    assert world.offsets() == [1, 2, 3]
    assert world.partition.log.log_start_offset == 1
    with pytest.raises(KafkaError) as caught:
        world.partition.read(0, 1000, at_least_one_batch=True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_segments_that_are_due_after_the_stop_are_removed_by_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.fill(3, apart_s=1801)
    world.clean()
    assert [name for name in world.logs() if name.endswith(".deleted")]
    world.housekeeping.stop()
    after = world.node.restart(topic())
    world.node.clock.advance(7)
    world.node.work()
    assert (caplog.messages, world.node.directories[0].offline) == ([], False)
    assert not [name for name in after.names("a", "t-0") if name.endswith(".deleted")]


def test_the_oldest_segments_go_while_the_rest_fills_retention_bytes() -> None:
    world = World(replace(SHORT, retention_bytes=2 * BATCH_BYTES, retention_ms=-1))
    world.fill(5)
    world.clean()
    assert world.offsets() == [3, 4]


def test_young_and_small_segments_stay() -> None:
    world = World(replace(SHORT, retention_bytes=3 * BATCH_BYTES))
    world.fill(3, apart_s=1)
    world.clean()
    assert world.offsets() == [0, 1, 2]


def test_an_expired_active_segment_is_rolled_and_goes_in_the_next_round() -> None:
    world = World()
    world.fill(2)
    world.node.clock.advance(HOUR_MS / 1000 + 1)
    world.clean()
    assert world.offsets() == [1, 2]
    assert world.partition.log.log_end_offset == 2
    world.clean()
    assert world.offsets() == [2]
    assert world.partition.log.log_start_offset == 2
    world.clean()
    assert world.offsets() == [2]
    assert world.node.append(world.partition).base_offset == 2


def test_expired_files_are_renamed_at_once_and_removed_after_file_delete_delay_ms() -> None:
    world = World()
    world.fill(2, apart_s=4000)
    world.node.append(world.partition)
    region = world.partition.read(1, 1000, at_least_one_batch=True).region
    assert isinstance(region, FileRegion)
    sent = region.pread(0, region.size_bytes)
    world.clean()
    assert world.logs() == [".log.deleted", "1.log.deleted", "2.log"]
    world.node.clock.advance(6)
    world.node.work()
    assert world.logs() == [".log.deleted", "1.log.deleted", "2.log"]
    world.node.clock.advance(1)
    world.node.work()
    assert world.logs() == ["2.log"]
    # A client that was sent the file still reads it.
    assert region.pread(0, region.size_bytes) == sent
    region.release()


def test_deleted_segments_do_not_come_back_after_a_crash() -> None:
    world = World()
    world.fill(2, apart_s=4000)
    world.node.append(world.partition)
    world.partition.flush()
    world.clean()
    world.node.files.crash()
    again = Node(files=world.node.files, config=SHORT)
    again.open(topic())
    assert again.replicas.find("t", 0).log.log_start_offset == 2


def test_a_log_deleted_meanwhile_does_not_take_its_directory_offline() -> None:
    world = World()
    world.fill(3, apart_s=4000)
    world.housekeeping.delete_expired_segments()
    world.node.replicas.delete_partitions(topic())
    world.node.work()
    world.node.clock.advance(60)
    world.node.work()
    assert not world.node.directories[0].offline
    world.node.open(topic("u", 1, b"u" * 16))
    assert world.node.append(world.node.replicas.find("u", 0)).base_offset == 0


def test_a_disk_that_fails_while_renaming_takes_its_directory_offline() -> None:
    world = World()
    world.fill(2, apart_s=4000)
    world.node.append(world.partition)
    world.node.files.fail_on("sync_directory", errno.EIO)
    world.clean()
    assert world.node.directories[0].offline


def test_deleted_records_do_not_come_back_after_a_clean_restart() -> None:
    world = World()
    world.fill(3)
    deleting = world.node.replicas.delete_records(world.partition, 2)
    world.node.work()
    assert deleting.called
    again = world.node.restart(topic())
    log = again.replicas.find("t", 0).log
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)


def test_segments_before_the_log_start_are_deleted_with_its_checkpoint() -> None:
    world = World()
    world.fill(3)
    world.node.replicas.delete_records(world.partition, 2)
    world.node.work()
    assert world.checkpointed(LOG_START_OFFSETS) == {("t", 0): 2}
    world.clean()
    assert world.offsets() == [2]
    world.housekeeping.checkpoint()
    world.node.work()
    assert world.checkpointed(LOG_START_OFFSETS) == {}


# The other tasks


def test_flush_ms_puts_old_data_on_the_disk() -> None:
    world = World(LogConfig(flush_ms=1000))
    world.fill(1)
    world.node.clock.advance(1)
    world.housekeeping.flush_old_data()
    world.node.work()
    assert world.partition.log.recovery_point == 0
    world.node.clock.advance(1)
    world.housekeeping.flush_old_data()
    world.node.work()
    assert world.partition.log.recovery_point == 1


def test_a_sync_that_fails_takes_the_directory_offline() -> None:
    world = World(LogConfig(flush_ms=0))
    world.fill(1, apart_s=1)
    world.node.files.fail_on("sync", errno.EIO)
    world.housekeeping.flush_old_data()
    world.node.work()
    assert world.node.directories[0].offline


def test_a_checkpoint_holds_the_offsets_for_a_restart() -> None:
    world = World()
    world.fill(3)
    world.node.replicas.delete_records(world.partition, 1)
    world.housekeeping.checkpoint()
    world.node.work()
    # Sealed segments are on the disk; the active one is not.
    assert world.checkpointed(RECOVERY_POINTS) == {("t", 0): 2}
    assert world.checkpointed(LOG_START_OFFSETS) == {("t", 0): 1}
    assert world.checkpointed(HIGH_WATERMARKS) == {("t", 0): 3}


def test_an_idle_producer_is_forgotten_after_producer_id_expiration_ms() -> None:
    world = World(LogConfig(producer_id_expiration_ms=5000))
    content = build_batch([(world.node.now_ms, b"k", b"v", [])], producer_id=7, producer_epoch=0, base_sequence=0)
    world.partition.append(content, world.node.now_ms)
    world.node.clock.advance(4)
    world.housekeeping.expire_producers()
    assert list(world.partition.log.producer_state.producers) == [7]
    world.node.clock.advance(2)
    world.housekeeping.expire_producers()
    assert list(world.partition.log.producer_state.producers) == []


def produce(world: World, producer_id: int) -> None:
    content = build_batch(
        [(world.node.now_ms, b"k", b"v", [])], producer_id=producer_id, producer_epoch=0, base_sequence=0
    )
    world.partition.append(content, world.node.now_ms)


def test_of_too_many_producers_those_idle_for_longest_are_forgotten() -> None:
    world = World(LogConfig(), **{"kafkacompat.producer.ids.max": "40"})
    for producer_id in range(60):
        produce(world, producer_id)
        world.node.clock.advance(1)
    producers = world.partition.log.producer_state.producers
    for open_one in (0, 3):
        changed = producers[open_one]
        changed.current_txn_first_offset = 0
        producers[open_one] = changed
    bounding = world.housekeeping.limit_producers()
    world.node.clock.advance(0)
    assert bounding.called
    left = list(producers)
    # Room for some more is made at once.
    assert len(left) <= 40
    assert {0, 3} <= set(left)
    assert left[2:] == list(range(left[2], 60))
    bounding = world.housekeeping.limit_producers()
    assert list(producers) == left


def test_of_too_many_producers_that_were_asked_about_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_producers, "MOST_GUARDS", 300)
    world = World(LogConfig())
    guards = [world.partition.guard(producer_id, 0, 0, begins_at_zero=True) for producer_id in range(301)]
    verifications = world.partition.log.producer_state.verifications
    world.housekeeping.limit_producers()
    world.node.clock.advance(0)
    assert len(verifications) == 300
    verifications.check(1, guards[1])
    with pytest.raises(KafkaError):
        verifications.check(0, guards[0])


def test_many_producers_are_gone_through_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(LogConfig(producer_id_expiration_ms=5000))
    produce(world, 0)
    packed = world.partition.log.producer_state.producers.packed
    packed.update(dict.fromkeys(range(12_000), packed[0]))
    world.node.clock.advance(6)
    begin = world.node.clock.callLater
    monkeypatch.setattr(world.node.clock, "callLater", lambda delay, *call: begin(delay + 0.5, *call))
    expiring = world.housekeeping.expire_producers()
    turns = 0
    while not expiring.called:
        turns += 1
        assert len(packed) == 12_000 - turns * 5_000
        world.node.clock.advance(0.5)
    assert turns == 2
    assert not packed


def test_a_checkpoint_for_which_there_is_no_room_is_written_later(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.node.append(world.partition)
    world.node.files.fail_on("append", errno.ENOSPC)
    for expected in ({}, {("t", 0): 1}):
        world.housekeeping.checkpoint().addErrback(lambda _: None)
        world.node.work()
        assert world.checkpointed(HIGH_WATERMARKS) == expected
    assert not world.node.directories[0].offline


def test_a_checkpoint_that_cannot_be_written_takes_the_directory_offline() -> None:
    world = World()
    world.node.files.fail_on("sync", errno.EIO)
    world.housekeeping.checkpoint().addErrback(lambda _: None)
    world.node.work()
    assert world.node.directories[0].offline


def test_the_high_watermark_is_written_down_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.node.append(world.partition)
    monkeypatch.setattr(type(world.partition), "high_watermark", OffsetPosition(0, 0, 0))
    world.housekeeping.checkpoint()
    world.node.work()
    assert world.checkpointed(HIGH_WATERMARKS) == {("t", 0): 0}


# The timers


def test_each_task_runs_by_its_own_interval() -> None:
    world = World(log_retention_check_interval_ms="2000", log_flush_offset_checkpoint_interval_ms="3000")
    world.fill(2, apart_s=4000)
    world.node.append(world.partition)
    world.housekeeping.start()
    world.node.clock.advance(1)
    world.node.work()
    assert world.offsets() == [0, 1, 2]
    world.node.clock.advance(1)
    world.node.work()
    assert world.offsets() == [2]
    assert world.checkpointed(HIGH_WATERMARKS) == {}
    world.node.clock.advance(1)
    world.node.work()
    assert world.checkpointed(HIGH_WATERMARKS) == {("t", 0): 3}


def test_nothing_runs_after_the_stop() -> None:
    world = World(log_retention_check_interval_ms="2000")
    world.housekeeping.start()
    world.housekeeping.stop()
    assert world.node.clock.getDelayedCalls() == []


def test_an_interval_of_the_largest_long_is_never() -> None:
    world = World(log_flush_scheduler_interval_ms=str(LONG_MAX))
    world.housekeeping.start()
    assert len(world.node.clock.getDelayedCalls()) == 5


def test_a_task_that_fails_is_logged_and_runs_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(log_retention_check_interval_ms="1000")
    world.fill(2, apart_s=4000)
    world.node.append(world.partition)
    with monkeypatch.context() as broken:
        broken.setattr(LogTrimmer, "expired_segments", lambda *_args, **_kw: 1 // 0)
        world.housekeeping.start()
        world.node.clock.advance(1)
    assert "log.retention.check.interval.ms failed" in caplog.text
    world.node.clock.advance(1)
    world.node.work()
    assert world.offsets() == [2]


def test_a_checkpoint_that_cannot_be_written_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    world = World(log_flush_offset_checkpoint_interval_ms="1000")
    world.fill(1)
    world.housekeeping.start()
    world.node.files.fail_on("open", errno.ENOSPC)
    world.node.clock.advance(1)
    world.node.work()
    assert "log.flush.offset.checkpoint.interval.ms failed" in caplog.text
    world.node.clock.advance(1)
    world.node.work()
    assert world.checkpointed(HIGH_WATERMARKS) == {("t", 0): 1}
