"""The offsets topic in this broker's own partitions."""

from __future__ import annotations

import errno

import pytest

from kafkacompat.coordination.replicated_log import PIECE_BYTES, ReplicatedLog
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.metadata.image import ImageHolder
from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.replica_progress import FetchingReplica
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED, Guard
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch, read_header, read_records
from tests.fakes.in_sync_updates import ManualInSyncUpdates
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import EPOCH, Node, topic

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


def test_appended_records_are_read_in_order_by_partition() -> None:
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


def test_a_queued_append_fires_when_it_is_in_the_log() -> None:
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


def test_the_broker_may_write_batches_that_producers_may_not() -> None:
    world = World()
    outcome(world.log.append(0, build_batch([(world.node.now_ms, b"k", b"v", [])], base_offset=9)))
    assert [read_header(batch).base_offset for batch in world.log.read(0)] == [0]


# Other replicas


class Replicated(World):
    """Partition 0 has the replicas 1 and 2, or others, in the next leader epoch."""

    def __init__(self, *, in_sync: tuple[int, ...] = (1, 2), min_in_sync: int = 1) -> None:
        super().__init__(LogConfig(min_insync_replicas=min_in_sync))
        self.epoch = EPOCH + 1
        self.view = ClusterView(1, 30_000, {1: 11, 2: 12}.get, ManualInSyncUpdates())
        self.lead(in_sync=in_sync)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find(OFFSETS_TOPIC, 0)

    def lead(self, *, in_sync: tuple[int, ...], replicas: tuple[int, ...] = (1, 2), partition_epoch: int = 1) -> None:
        self.partition.become_leader(self.view, self.epoch, replicas, in_sync, partition_epoch, self.node.now_ms)

    def fetch(self, offset: int) -> None:
        """Let the other replica have everything before *offset*."""
        self.partition.progress.note_fetch(FetchingReplica(2, -1), offset, 0, self.node.now_ms)


def test_an_append_counts_when_the_in_sync_replicas_have_it() -> None:
    world = Replicated()
    appended = world.log.append(0, world.batch(b"one"))
    assert not has_fired(appended)
    world.fetch(1)
    assert outcome(appended) is None


def test_an_append_of_a_lost_leadership_fails_as_one_that_is_rejected() -> None:
    world = Replicated()
    appended = world.log.append(0, world.batch(b"one"))
    world.partition.become_follower(2, world.epoch + 1)
    assert refusal(appended) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(world.log.append(0, world.batch(b"two"))) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_read_records_are_committed_once_the_high_watermark_passes_them() -> None:
    world = Replicated()
    world.log.append(0, world.batch(b"one"))
    assert world.values(0) == [b"one"]
    committed = world.log.wait_until_committed(0)
    assert not has_fired(committed)
    world.fetch(1)
    assert outcome(committed) is None
    assert outcome(world.log.wait_until_committed(0)) is None


def test_below_the_minimum_of_replicas_the_wait_goes_on() -> None:
    world = Replicated(min_in_sync=2)
    refused = world.log.append(0, world.batch(b"one"))
    committed = world.log.wait_until_committed(0)
    world.lead(in_sync=(1,), partition_epoch=2)
    assert refusal(refused) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert refusal(world.log.append(0, world.batch(b"two"))) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert not has_fired(committed)
    world.fetch(1)
    world.lead(in_sync=(1, 2), partition_epoch=3)
    world.fetch(1)
    assert outcome(committed) is None


def test_a_leadership_that_is_lost_ends_the_wait() -> None:
    world = Replicated()
    world.log.append(0, world.batch(b"one")).addErrback(lambda _: None)
    committed = world.log.wait_until_committed(0)
    world.partition.become_follower(2, world.epoch + 1)
    assert refusal(committed) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(world.log.wait_until_committed(0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(world.log.wait_until_committed(9)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_only_replica_waits_for_no_other() -> None:
    world = World(syncs_always=True)
    world.log.append(0, world.batch(b"one"))
    assert outcome(world.log.wait_until_committed(0)) is None


def test_reading_ends_where_the_log_ended_at_the_election() -> None:
    world = World()
    for value in (b"one", b"two"):
        world.log.append(0, world.batch(value))
    reading = world.log.read(0)
    first = next(reading)
    world.log.append(0, world.batch(b"late"))
    values = [record.value for batch in (first, *reading) for record in read_records(batch)]
    assert values == [b"one", b"two"]


# Transactions

PRODUCER = 9
NOBODY_VOUCHES = Guard(-1, -1, False)


def in_transaction(world: World, epoch: int = 0) -> bytes:
    record = (world.node.now_ms, b"k", b"v", ())
    return build_batch([record], producer_id=PRODUCER, producer_epoch=epoch, transactional=True)


def partition_of(world: World) -> Partition:
    return world.node.replicas.find(OFFSETS_TOPIC, 0)


def ask_for_guard(world: World) -> Guard:
    guard = partition_of(world).guard(PRODUCER, 0, -1, begins_at_zero=False)
    assert guard is not None
    return guard


def end_transaction(world: World) -> object:
    return partition_of(world).append_marker(Marker(PRODUCER, 0, 0, True, 0), world.node.now_ms)


def test_a_transaction_begins_with_a_guard() -> None:
    world = World()
    assert refusal(world.log.append(0, in_transaction(world), NOBODY_VOUCHES)) == ErrorCode.INVALID_TXN_STATE
    outcome(world.log.append(0, in_transaction(world), ask_for_guard(world)))
    assert partition_of(world).guard(PRODUCER, 0, -1, begins_at_zero=False) is None
    outcome(world.log.append(0, in_transaction(world), NOBODY_VOUCHES))
    assert partition_of(world).last_stable_offset == 0
    assert [read_header(batch).base_sequence for batch in world.log.read(0)] == [-1, -1]


def test_a_marker_invalidates_an_earlier_guard() -> None:
    world = World()
    guard = ask_for_guard(world)
    outcome(world.log.append(0, in_transaction(world), guard))
    end_transaction(world)
    for candidate in (guard, NOBODY_VOUCHES):
        assert refusal(world.log.append(0, in_transaction(world), candidate)) == ErrorCode.INVALID_TXN_STATE
    outcome(world.log.append(0, in_transaction(world), ask_for_guard(world)))


def test_a_queued_marker_ends_the_transaction_for_later_queued_batches() -> None:
    world = World()
    outcome(world.log.append(0, in_transaction(world), ask_for_guard(world)))
    assert partition_of(world).pause()
    end_transaction(world)
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


def damage_log(world: World, position: int) -> None:
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
    damage_log(world, sum(sizes[:index]) + byte)
    assert world.values(0) == [value for value in values if value != values[index]]
    (bad,) = world.node.replicas.find(OFFSETS_TOPIC, 0).log.examiner.corrupt[0]
    assert (bad.first_offset, bad.last_offset) == (index, index)
    assert world.values(0) == [value for value in values if value != values[index]]
