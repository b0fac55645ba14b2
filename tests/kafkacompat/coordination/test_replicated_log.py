"""The offsets topic in this broker's own partitions."""

from __future__ import annotations

import errno

import pytest

from kafkacompat.coordination.replicated_log import PIECE_BYTES, ReplicatedLog
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED, Guard
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch, read_header, read_records
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic

OFFSETS = topic(OFFSETS_TOPIC, 2, b"o" * 16)


class World:
    def __init__(self, config: LogConfig | None = None, *, made: bool = True, syncs_always: bool = False) -> None:
        self.node = Node(config=config, syncs_always=syncs_always)
        self.metadata = ImageHolder()
        if made:
            self.node.open(OFFSETS)
            self.metadata.publish(self.metadata.image.with_topics({OFFSETS_TOPIC: OFFSETS}))
        self.log = ReplicatedLog(OFFSETS_TOPIC, self.node.replicas, self.metadata, self.node.clock, 50)

    def batch(self, value: bytes, count: int = 1) -> bytes:
        return build_batch([(self.node.now_ms, b"k", value, [])] * count)

    def values(self, partition: int) -> list[bytes | None]:
        return [record.value for batch in self.log.read(partition) for record in read_records(batch)]


def test_the_count_of_partitions_is_the_topics_own_once_there_is_one() -> None:
    assert World(made=False).log.partition_count == 50
    assert World().log.partition_count == 2


def test_what_was_appended_is_read_in_order_from_its_own_partition() -> None:
    world = World()
    for value in (b"one", b"two"):
        outcome(world.log.append(1, world.batch(value)))
    outcome(world.log.append(0, world.batch(b"other", count=2)))
    assert world.values(1) == [b"one", b"two"]
    assert world.values(0) == [b"other", b"other"]
    assert [read_header(batch).base_offset for batch in world.log.read(1)] == [0, 1]


def test_a_batch_is_appended_when_it_is_on_the_disk_where_appends_wait_for_that() -> None:
    world = World(syncs_always=True)
    appended = [world.log.append(0, world.batch(value)) for value in (b"one", b"two")]
    assert not any(map(has_fired, appended))
    world.node.sync()
    assert all(map(has_fired, appended))
    lost = world.log.append(0, world.batch(b"three"))
    world.node.files.fail_on("sync", errno.ENOSPC)
    world.node.sync()
    assert refusal(lost) == ErrorCode.KAFKA_STORAGE_ERROR


def test_reading_goes_on_over_pieces_and_segments() -> None:
    large = b"x" * (PIECE_BYTES // 3)
    world = World(LogConfig(segment_bytes=2 * PIECE_BYTES))
    for _ in range(12):
        world.log.append(0, world.batch(large))
        world.node.work()
    assert len(list(world.node.replicas.find(OFFSETS_TOPIC, 0).log.segments)) > 1
    assert world.values(0) == [large] * 12


def test_a_batch_larger_than_a_piece_is_read_whole() -> None:
    large = b"x" * (2 * PIECE_BYTES)
    world = World()
    outcome(world.log.append(0, world.batch(large)))
    outcome(world.log.append(0, world.batch(b"small")))
    assert world.values(0) == [large, b"small"]


def test_reading_begins_at_the_logs_start_and_keeps_no_file_open() -> None:
    world = World()
    for value in (b"one", b"two"):
        world.log.append(0, world.batch(value))
    partition = world.node.replicas.find(OFFSETS_TOPIC, 0)
    partition.log.trimmer.advance_log_start_offset(1)
    assert world.values(0) == [b"two"]
    partition.log.release()
    world.node.replicas.find(OFFSETS_TOPIC, 1).log.release()
    assert world.node.files.open_handles == 0


def test_an_append_in_line_is_told_when_it_is_in_the_log() -> None:
    world = World(LogConfig(segment_bytes=len(World(made=False).batch(b"one"))))
    outcome(world.log.append(0, world.batch(b"one")))
    waiting = world.log.append(0, world.batch(b"two"))
    assert not has_fired(waiting)
    world.node.work()
    assert outcome(waiting) is None
    assert world.values(0) == [b"one", b"two"]


def test_an_append_that_is_refused_fails_and_does_not_raise() -> None:
    world = World()
    assert refusal(world.log.append(2, world.batch(b"x"))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.node.files.fail_on("append", errno.EIO)
    assert refusal(world.log.append(0, world.batch(b"x"))) == ErrorCode.KAFKA_STORAGE_ERROR


def test_the_broker_may_write_what_a_producer_may_not() -> None:
    world = World()
    outcome(world.log.append(0, build_batch([(world.node.now_ms, b"k", b"v", [])], base_offset=9)))
    assert [read_header(batch).base_offset for batch in world.log.read(0)] == [0]


# Transactions

PRODUCER = 9
NOBODY_VOUCHES = Guard(-1, -1, False)


def in_transaction(world: World, epoch: int = 0) -> bytes:
    record = (world.node.now_ms, b"k", b"v", ())
    return build_batch([record], producer_id=PRODUCER, producer_epoch=epoch, transactional=True)


def partition_of(world: World) -> Partition:
    return world.node.replicas.find(OFFSETS_TOPIC, 0)


def asked(world: World) -> Guard:
    guard = partition_of(world).guard(PRODUCER, 0, -1, begins_at_zero=False)
    assert guard is not None
    return guard


def end(world: World) -> object:
    return partition_of(world).append_marker(Marker(PRODUCER, 0, 0, True, 0), world.node.now_ms)


def test_a_transaction_begins_with_what_shows_that_its_coordinator_vouches_for_it() -> None:
    world = World()
    assert refusal(world.log.append(0, in_transaction(world), NOBODY_VOUCHES)) == ErrorCode.INVALID_TXN_STATE
    outcome(world.log.append(0, in_transaction(world), asked(world)))
    assert partition_of(world).guard(PRODUCER, 0, -1, begins_at_zero=False) is None
    outcome(world.log.append(0, in_transaction(world), NOBODY_VOUCHES))
    assert partition_of(world).last_stable_offset == 0
    assert [read_header(batch).base_sequence for batch in world.log.read(0)] == [-1, -1]


def test_what_the_coordinator_said_before_the_marker_counts_no_more() -> None:
    world = World()
    guard = asked(world)
    outcome(world.log.append(0, in_transaction(world), guard))
    end(world)
    for each in (guard, NOBODY_VOUCHES):
        assert refusal(world.log.append(0, in_transaction(world), each)) == ErrorCode.INVALID_TXN_STATE
    outcome(world.log.append(0, in_transaction(world), asked(world)))


def test_a_marker_in_line_ends_the_transaction_for_what_is_in_line_behind_it() -> None:
    world = World()
    outcome(world.log.append(0, in_transaction(world), asked(world)))
    assert partition_of(world).pause()
    end(world)
    behind = world.log.append(0, in_transaction(world), NOBODY_VOUCHES)
    assert not has_fired(behind)
    partition_of(world).resume()
    assert refusal(behind) == ErrorCode.INVALID_TXN_STATE
    assert partition_of(world).last_stable_offset == 2


def test_an_older_epoch_is_fenced() -> None:
    world = World()
    outcome(world.log.append(0, in_transaction(world, epoch=1), NOT_VERIFIED))
    refused = world.log.append(0, in_transaction(world, epoch=0), NOT_VERIFIED)
    assert refusal(refused) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_partition_that_is_not_here_cannot_be_read() -> None:
    with pytest.raises(KafkaError) as caught:
        next(World(made=False).log.read(0))
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def damage(world: World, position: int) -> None:
    path = f"{world.node.replicas.find(OFFSETS_TOPIC, 0).log.directory}/{0:020d}.log"
    file = world.node.files.open(path)
    data = bytearray(file.pread(file.size(), 0))
    data[position] ^= 0x10
    file.truncate(0)
    file.append((data,), len(data))
    file.close()


@pytest.mark.parametrize("byte", [0, 8, 16, 25, 70])
@pytest.mark.parametrize("index", [0, 1, 3])
def test_a_damaged_batch_is_left_out_and_remembered(byte: int, index: int) -> None:
    world = World()
    values = [b"one", b"two", b"three", b"four"]
    sizes = [len(world.batch(value)) for value in values]
    for value in values:
        world.log.append(0, world.batch(value))
    damage(world, sum(sizes[:index]) + byte)
    assert world.values(0) == [value for value in values if value != values[index]]
    (bad,) = world.node.replicas.find(OFFSETS_TOPIC, 0).log.examiner.corrupt[0]
    assert (bad.first_offset, bad.last_offset) == (index, index)
    assert world.values(0) == [value for value in values if value != values[index]]
