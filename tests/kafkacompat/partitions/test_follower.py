"""A partition that this broker follows: appending in line, the high watermark, truncation, and what is reported."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.image import TopicImage
from kafkacompat.partitions.follower import FollowerPartition
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import FetchedAppend
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import EPOCH, START_S, Node, topic
from tests.kafkacompat.partitions.test_partition import Watcher
from tests.kafkacompat.upkeep.moves import offsets

NOW_MS = START_S * 1000


def replicated(name: str = "t") -> TopicImage:
    """A topic of one partition with two replicas."""
    image = topic(name)
    return image._replace(partitions=tuple(partition._replace(replicas=(1, 2)) for partition in image.partitions))


def following(**kw: Any) -> tuple[Node, Partition, FollowerPartition]:
    """A node with a partition that has a second replica."""
    node = Node(**kw)
    node.open(replicated())
    partition = node.replicas.find("t", 0)
    partition.become_follower(2, EPOCH)
    return node, partition, partition.follower


def batches(first_offset: int, count: int = 1, **kw: Any) -> bytes:
    """Batches of one record as the leader stores them."""
    record: Any = (NOW_MS, b"k", b"v" * 100, [])
    return b"".join(
        build_batch([record], base_offset=offset, leader_epoch=EPOCH, **kw)
        for offset in range(first_offset, first_offset + count)
    )


SIZE = len(batches(0))


def appended(
    follower: FollowerPartition, records: bytes, high_watermark: int = 0, start_offset: int = 0
) -> FetchedAppend:
    """Append now."""
    result = follower.append_fetched(records, high_watermark, start_offset, NOW_MS)
    assert isinstance(result, FetchedAppend)
    return result


def waiting(follower: FollowerPartition, records: bytes, high_watermark: int = 0) -> Deferred[FetchedAppend]:
    """Append, which has to wait."""
    result = follower.append_fetched(records, high_watermark, 0, NOW_MS)
    assert isinstance(result, Deferred)
    return result


def readable(partition: Partition) -> int:
    """How many bytes consumers can read from the beginning."""
    read = partition.read(partition.log.log_start_offset, 1 << 20, at_least_one_batch=True, from_follower=True)
    if read.region is not None and not isinstance(read.region, bytes):
        read.region.release()
    return read.size_bytes


# --- appending, and the high watermark ---


def test_consumers_see_what_the_leader_says_is_replicated() -> None:
    _, partition, follower = following()
    watcher = Watcher()
    partition.watch(watcher, committed=False)
    assert appended(follower, batches(0, 3)).last_offset == 2
    assert (follower.log_end_offset, partition.high_watermark.offset, readable(partition)) == (3, 0, 0)
    assert watcher.bytes == 0
    appended(follower, b"", 2)
    assert (partition.high_watermark.offset, readable(partition), watcher.bytes) == (2, 2 * SIZE, 2 * SIZE)
    appended(follower, batches(3, 2), 100)
    assert (partition.high_watermark.offset, readable(partition), watcher.bytes) == (5, 5 * SIZE, 5 * SIZE)


def test_the_high_watermark_never_falls_because_a_new_leader_knows_less() -> None:
    _, partition, follower = following()
    appended(follower, batches(0, 3), 3)
    appended(follower, b"", 1)
    assert partition.high_watermark.offset == 3


def test_records_that_the_leader_deleted_are_deleted_here() -> None:
    _, partition, follower = following()
    appended(follower, batches(0, 4), 3, 3)
    assert partition.log.log_start_offset == 3
    appended(follower, b"", 4, 9)
    assert partition.log.log_start_offset == 4


def test_one_response_fills_several_segments() -> None:
    node, partition, follower = following(config=LogConfig(segment_bytes=2 * SIZE))
    result = waiting(follower, batches(0, 7), 7)
    assert partition.holds_appends
    while not has_fired(result):
        node.sync()
    assert outcome(result)[:4] == (0, 6, 7, 7 * SIZE)
    assert [segment.base_offset for segment in partition.log.segments] == [0, 2, 4, 6]
    assert (partition.high_watermark.offset, offsets(partition)) == (7, list(range(7)))


def test_an_append_waits_for_the_segment_that_is_being_made() -> None:
    node, partition, follower = following()
    appended(follower, batches(0))
    partition.roll()
    result = waiting(follower, batches(1))
    assert partition.log.log_end_offset == 1
    node.work()
    assert outcome(result).first_offset == 1
    assert [segment.base_offset for segment in partition.log.segments] == [0, 1]


def test_a_high_watermark_in_a_closed_segment_is_looked_up_on_the_disk() -> None:
    node, partition, follower = following(config=LogConfig(segment_bytes=3 * SIZE))
    result = waiting(follower, batches(0, 8))
    while not has_fired(result):
        node.sync()
    for segment in list(partition.log.segments)[:-1]:
        segment.unload()
    appended(follower, b"", 4)
    assert partition.high_watermark.offset == 0
    node.work()
    assert (partition.high_watermark.offset, partition.high_watermark.segment_base_offset) == (4, 3)
    assert partition.high_watermark.position == SIZE


def test_a_transaction_is_over_once_its_marker_is_below_the_high_watermark() -> None:
    _, partition, follower = following()
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    marker = build_batch(
        [(NOW_MS, b"\0\0\0\1", bytes(6), [])], base_offset=1, leader_epoch=EPOCH, control=True, **producer
    )
    appended(follower, batches(0, base_sequence=0, **producer) + marker, 1)
    assert partition.last_stable_offset == 0
    appended(follower, b"", 2)
    assert partition.last_stable_offset == 2


def test_batches_that_cannot_follow_change_nothing() -> None:
    _, partition, follower = following()
    appended(follower, batches(0, 2))
    for records in (batches(1), batches(2)[:-1] + b"x", build_batch([(NOW_MS, None, b"", [])], base_offset=2)):
        with pytest.raises(KafkaError):
            follower.append_fetched(records, 2, 0, NOW_MS)
    assert (partition.log.log_end_offset, partition.log.offline) == (2, False)
    assert appended(follower, batches(2)).last_offset == 2


def test_a_full_disk_refuses_what_is_fetched() -> None:
    node, _, follower = following(reserve_bytes=1)
    node.files.free_bytes = 0
    node.directories[0].space.measure()
    node.work()
    with pytest.raises(KafkaError) as refused:
        follower.append_fetched(batches(0), 0, 0, NOW_MS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert follower.log_end_offset == 0


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("starts_over", [False, True])
def test_a_full_disk_postpones_a_truncation(is_known: bool, starts_over: bool) -> None:
    node, partition, follower = following(reserve_bytes=1)
    appended(follower, batches(0, 5), 5)
    node.files.free_bytes = 0
    if is_known:
        node.directories[0].space.measure()
        node.work()
    truncating = follower.start_over_at(7) if starts_over else follower.truncate(3)
    node.work()
    assert refusal(truncating) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not (partition.log.offline or node.directories[0].offline)
    assert (follower.log_end_offset, partition.high_watermark.offset, readable(partition)) == (5, 5, 5 * SIZE)
    node.files.free_bytes = 1 << 30
    node.directories[0].space.measure()
    node.work()
    cut(node, follower.truncate(3))
    assert (follower.log_end_offset, partition.high_watermark.offset) == (3, 3)


def test_a_deleted_partition_refuses() -> None:
    node, _, follower = following(syncs_always=True)
    unsynced = waiting(follower, batches(0))
    node.replicas.delete_partitions(replicated())
    assert refusal(unsynced) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError):
        follower.append_fetched(batches(1), 0, 0, NOW_MS)
    assert refusal(follower.truncate(0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.work()


# --- what is on the disk ---


def test_only_what_is_on_the_disk_is_reported_where_that_counts() -> None:
    node, partition, follower = following(syncs_always=True)
    result = waiting(follower, batches(0, 2), 2)
    assert (follower.log_end_offset, follower.reported_end_offset, partition.high_watermark.offset) == (2, 0, 0)
    node.clock.advance(0)
    assert not has_fired(result)
    node.work()
    assert outcome(result).batch_count == 2
    assert (follower.reported_end_offset, partition.high_watermark.offset) == (2, 2)
    node.files.crash()
    node = node.next_process()
    node.open(replicated())
    assert node.replicas.find("t", 0).follower.reported_end_offset == 2


def test_what_is_in_the_page_cache_is_reported_otherwise() -> None:
    node, _, follower = following()
    appended(follower, batches(0, 2))
    assert follower.reported_end_offset == 2
    assert not node.disks[0].waiting


def test_a_sync_that_fails_fails_the_append() -> None:
    node, _, follower = following(syncs_always=True)
    result = waiting(follower, batches(0))
    node.files.fail_on("sync", errno.EIO)
    node.sync()
    assert refusal(result) is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.directories[0].offline


# --- truncating ---


def cut(node: Node, cutting: Deferred[None]) -> None:
    """Let the disk truncate."""
    node.work()
    outcome(cutting)


def test_a_truncated_follower_goes_on_at_its_end() -> None:
    node, partition, follower = following(config=LogConfig(segment_bytes=3 * SIZE))
    result = waiting(follower, batches(0, 8), 2)
    while not has_fired(result):
        node.sync()
    truncating = follower.truncate(4)
    assert partition.is_truncating
    after = waiting(follower, batches(4, 2), 5)
    assert readable(partition) == 2 * SIZE
    cut(node, truncating)
    assert (outcome(after).first_offset, partition.is_truncating) == (4, False)
    assert (offsets(partition), partition.high_watermark.offset) == (list(range(6))[:5], 5)
    assert follower.log_end_offset == 6


def test_truncation_below_the_high_watermark_takes_it_along() -> None:
    node, partition, follower = following()
    appended(follower, batches(0, 5), 5)
    watcher = Watcher()
    partition.watch(watcher, committed=False)
    truncating = follower.truncate(3)
    assert (partition.high_watermark.offset, readable(partition)) == (0, 0)
    cut(node, truncating)
    assert (partition.high_watermark.offset, readable(partition), watcher.woken) == (3, 3 * SIZE, 1)


def test_the_checkpoints_of_a_truncated_log_are_on_the_disk() -> None:
    """Later batches are not on the disk up to the old recovery point."""
    node, partition, follower = following()
    appended(follower, batches(0, 8), 6)
    partition.flush()
    node.work()
    checkpoint(node)
    storage = node.directories[0].storage
    assert (storage.checkpoints.recovery_points["t", 0], storage.checkpoints.high_watermarks["t", 0]) == (8, 6)
    cut(node, follower.truncate(4))
    node.files.crash()
    checkpoints = node.next_process().directories[0].storage.checkpoints
    assert (checkpoints.recovery_points["t", 0], checkpoints.high_watermarks["t", 0]) == (4, 4)


def checkpoint(node: Node) -> None:
    """Write the checkpoints, as housekeeping does."""
    for directory, logs in node.replicas.logs_by_directory():
        directory.storage.checkpoint(logs, node.replicas.high_watermarks(logs))


def test_a_log_starts_over_where_the_leaders_begins() -> None:
    node, partition, follower = following()
    appended(follower, batches(0, 3), 3)
    cut(node, follower.start_over_at(50))
    assert (partition.log.log_start_offset, follower.log_end_offset, partition.high_watermark.offset) == (50, 50, 50)
    assert appended(follower, batches(50, 2), 51, 50).last_offset == 51
    assert (offsets(partition), partition.high_watermark.offset) == ([50], 51)


def test_an_empty_log_can_begin_inside_the_leaders_first_batch() -> None:
    """DeleteRecords moved the leader's log start offset into a batch, and all of the batch is fetched."""
    node, partition, follower = following()
    cut(node, follower.start_over_at(7))
    whole = build_batch([(NOW_MS, None, b"v", [])] * 5, base_offset=5, leader_epoch=EPOCH)
    with pytest.raises(KafkaError):
        follower.append_fetched(whole[:-1] + b"x", 10, 7, NOW_MS)
    result = follower.append_fetched(whole, 10, 7, NOW_MS)
    assert isinstance(result, Deferred)
    node.work()
    assert outcome(result).first_offset == 5
    log = partition.log
    assert (log.segments[0].base_offset, log.log_start_offset, log.log_end_offset) == (5, 7, 10)


def test_a_truncation_fails_the_appends_that_wait_for_a_sync() -> None:
    node, _, follower = following(syncs_always=True)
    unsynced = waiting(follower, batches(0, 3))
    truncating = follower.truncate(1)
    assert refusal(unsynced) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    cut(node, truncating)
    node.sync()
    assert (follower.log_end_offset, follower.reported_end_offset) == (1, 0)
    after = waiting(follower, batches(1))
    node.sync()
    assert outcome(after).first_offset == 1
    assert follower.reported_end_offset == 2


def test_a_truncation_waits_for_a_segment_that_is_being_made() -> None:
    node, partition, follower = following()
    appended(follower, batches(0, 2))
    partition.roll()
    cut(node, follower.truncate(1))
    assert [segment.base_offset for segment in partition.log.segments] == [0]
    assert appended(follower, batches(1)).first_offset == 1


def test_a_truncation_that_fails_takes_the_directory_offline() -> None:
    node, _, follower = following()
    appended(follower, batches(0, 3))
    truncating = follower.truncate(1)
    held = waiting(follower, batches(1))
    node.files.fail_on("truncate", errno.EIO)
    node.work()
    assert refusal(truncating) is ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal(held) is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.directories[0].offline


def test_a_move_ends_before_the_truncation() -> None:
    node = Node("/a", "/b")
    node.open(replicated())
    partition = node.replicas.find("t", 0)
    appended(partition.follower, batches(0, 3))
    home = node.replicas.directories.find_home(("t", 0))
    target = next(directory for directory in node.directories if directory is not home)
    node.replicas.move("t", 0, target.path)
    truncating = node.replicas.truncate(partition, 1)
    node.sync()
    assert list(node.moves) == []
    cut(node, truncating)
    assert partition.log.log_end_offset == 1
    cut(node, node.replicas.start_over_at(partition, 9))
    assert partition.log.log_end_offset == 9


def test_retention_leaves_a_log_alone_that_is_cut() -> None:
    node, partition, follower = following(config=LogConfig(segment_bytes=SIZE, retention_bytes=0))
    result = waiting(follower, batches(0, 4), 4)
    while not has_fired(result):
        node.sync()
    truncating = follower.truncate(3)
    Housekeeping(node.clock, BrokerConfig({"node.id": "1"}), node.replicas).delete_expired(partition)
    assert partition.log.segments[0].base_offset == 0
    cut(node, truncating)


# --- epochs ---


def test_the_end_of_an_epoch_is_that_of_the_log() -> None:
    """Not of what is replicated: the leader decides by it where the logs diverge."""
    _, _, follower = following()
    appended(follower, batches(0, 3), 1)
    assert follower.latest_epoch == EPOCH
    assert follower.end_offset_for_epoch(EPOCH) == (EPOCH, 3)
    assert follower.end_offset_for_epoch(EPOCH + 1) == (-1, -1)


# --- starting ---


def restarted(node: Node, image: TopicImage, *, clean: bool) -> Partition:
    """The partition in the next process, after a clean stop or a kill."""
    if clean:
        for directory, logs in node.replicas.logs_by_directory():
            directory.storage.close(logs, node.replicas.high_watermarks(logs))
    node.files.crash(lose_unsynced=False)
    node = node.next_process()
    node.open(image)
    partition = node.replicas.find("t", 0)
    if not partition.is_leader:
        partition.become_follower(2, EPOCH)
    return partition


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_takes_the_high_watermark_from_the_checkpoint(clean: bool) -> None:
    node, _, follower = following()
    appended(follower, batches(0, 8), 5)
    checkpoint(node)
    appended(follower, b"", 6)
    partition = restarted(node, replicated(), clean=clean)
    expected = 6 if clean else 5
    assert (partition.log.log_end_offset, partition.high_watermark.offset) == (8, expected)
    assert readable(partition) == expected * SIZE


@pytest.mark.parametrize("clean", [True, False])
def test_a_single_replica_shows_all_of_its_log_after_a_start(clean: bool) -> None:
    node, _, follower = following()
    appended(follower, batches(0, 8), 5)
    checkpoint(node)
    assert restarted(node, topic(), clean=clean).high_watermark.offset == 8


def test_without_a_checkpoint_nothing_counts_as_replicated() -> None:
    node, _, follower = following()
    appended(follower, batches(0, 8), 5)
    partition = restarted(node, replicated(), clean=False)
    assert (partition.high_watermark.offset, readable(partition)) == (0, 0)


def test_a_transaction_whose_marker_is_not_replicated_is_open_after_a_start() -> None:
    node, _, follower = following()
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    marker = build_batch(
        [(NOW_MS, b"\0\0\0\1", bytes(6), [])], base_offset=2, leader_epoch=EPOCH, control=True, **producer
    )
    appended(follower, batches(0) + batches(1, base_sequence=0, **producer) + marker, 2)
    checkpoint(node)
    partition = restarted(node, replicated(), clean=False)
    assert (partition.high_watermark.offset, partition.last_stable_offset) == (2, 1)
    assert appended_epoch(partition) == 3


def appended_epoch(partition: Partition) -> int:
    """Let the leader say that all is replicated; return the last stable offset."""
    partition.follower.append_fetched(b"", 3, 0, NOW_MS)
    return partition.last_stable_offset
