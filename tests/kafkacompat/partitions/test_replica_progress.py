"""One partition as the leader of several replicas, and without a role."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.cluster_view import ClusterView
from kafkacompat.partitions.fetch_sessions import WantedPartition
from kafkacompat.partitions.fetching import FetchLimits, read_partitions
from kafkacompat.partitions.leadership import SILENT_MS
from kafkacompat.partitions.partition import Partition
from kafkacompat.partitions.replica_progress import FetchingReplica
from kafkacompat.storage.log.reader import LogReader
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.producers.transaction_marker import Marker
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.storage.segment.positions import OffsetPosition
from kafkacompat.timers import steady_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.in_sync_updates import ManualInSyncUpdates
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import EPOCH, Node, topic
from tests.kafkacompat.upkeep.moves import offsets

ALIVE = {1: 11, 2: 12, 3: 13}


class Leader:
    """Node 1, which leads t-0 with the replicas 1 and 2."""

    def __init__(self, *paths: str, in_sync: tuple[int, ...] = (1, 2), **given: Any) -> None:
        self.node = Node(*paths, **given)
        self.node.open(topic())
        self.updates = ManualInSyncUpdates()
        self.view = ClusterView(1, 30_000, ALIVE.get, self.updates)
        self.lead(EPOCH + 1, (1, 2), in_sync)

    @property
    def partition(self) -> Partition:
        return self.node.replicas.find("t", 0)

    def lead(self, epoch: int, replicas: tuple[int, ...], in_sync: tuple[int, ...], partition_epoch: int = 1) -> None:
        self.partition.become_leader(self.view, epoch, replicas, in_sync, partition_epoch, self.node.now_ms)

    def fetch(self, offset: int, replica: int = 2) -> None:
        wanted = WantedPartition("t", 0, offset, 1000, log_start_offset=0)
        read = self.partition.read_as_replica(
            FetchingReplica(replica, -1), wanted, 1000, at_least_one_batch=True, fetched_ms=self.node.now_ms
        )
        if read.region is not None:
            read.region.release()  # type: ignore[union-attr]

    def write(self, count: int = 1) -> None:
        for _ in range(count):
            self.node.append(self.partition)

    @property
    def high_watermark(self) -> OffsetPosition:
        return self.partition.high_watermark


def consumer_error(leader: Leader, offset: int) -> ErrorCode:
    """The error of a consumer's first fetch from an offset."""
    wanted = [WantedPartition("t", 0, offset, 1000)]
    limits = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=1000, one_batch_each=True, committed=False)
    (fetched,) = read_partitions(lambda _: leader.partition, wanted, limits, arrived_ms=steady_ms(leader.node.clock))
    return fetched.error_code


def test_a_leader_without_its_followers_may_have_a_successor_with_a_longer_log() -> None:
    leader = Leader()
    leader.write(3)
    leader.fetch(3)
    # Its follower fetches, so there is no other leader that could have the offset.
    assert consumer_error(leader, 5) is ErrorCode.OFFSET_OUT_OF_RANGE
    leader.node.clock.advance(SILENT_MS / 1000 + 1)
    assert consumer_error(leader, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    # An offset of its own log is its own matter.
    assert consumer_error(leader, 3) is ErrorCode.NONE
    # This fetch may have waited in the socket while the leader stood still.
    leader.fetch(3)
    assert consumer_error(leader, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader.fetch(3)
    assert consumer_error(leader, 5) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_is_alone_in_sync_has_no_successor() -> None:
    leader = Leader(in_sync=(1,))
    leader.write(3)
    leader.node.clock.advance(60)
    assert consumer_error(leader, 5) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_hears_no_follower_does_not_tell_its_end() -> None:
    leader = Leader(in_sync=(1, 2))
    leader.lead(EPOCH + 2, (1, 2, 3), (1, 2, 3))
    partition = leader.partition

    def code_after(seconds: float) -> ErrorCode:
        leader.node.clock.advance(seconds)
        try:
            partition.check_offsets_available(steady_ms(leader.node.clock))
        except KafkaError as problem:
            return problem.code
        return ErrorCode.NONE

    # The followers have time for their first fetch.
    assert code_after(SILENT_MS / 1000) is ErrorCode.NONE
    assert code_after(0.002) is ErrorCode.OFFSET_NOT_AVAILABLE
    # A fetch may have waited in the socket while the leader stood still. The next one shows that the follower follows.
    leader.fetch(0, replica=3)
    assert code_after(0) is ErrorCode.OFFSET_NOT_AVAILABLE
    leader.fetch(0, replica=3)
    assert code_after(SILENT_MS / 1000) is ErrorCode.NONE
    assert code_after(0.002) is ErrorCode.OFFSET_NOT_AVAILABLE
    leader.lead(EPOCH + 2, (1, 2, 3), (1,), partition_epoch=2)
    assert code_after(60) is ErrorCode.NONE


def test_an_append_does_not_wait_for_a_broker_that_has_left() -> None:
    alive = dict(ALIVE)
    leader = Leader()
    leader.view = ClusterView(1, 30_000, alive.get, leader.updates)
    leader.lead(EPOCH + 2, (1, 2, 3), (1, 2))
    # Broker 3 is caught up, and the controller does not let it join because it is stopping.
    leader.fetch(0, replica=3)
    leader.updates.refuse(ErrorCode.INELIGIBLE_REPLICA)
    leader.write()
    replicated = waiting(leader.partition.wait_for_replicas(1))
    leader.fetch(1, replica=2)
    leader.partition.note_lost_brokers({4}, leader.node.now_ms)
    assert not has_fired(replicated)
    del alive[3]
    leader.partition.note_lost_brokers({3}, leader.node.now_ms)
    assert has_fired(replicated)
    assert leader.high_watermark.offset == 1


def waiting(appended: object) -> Deferred[Any]:
    assert isinstance(appended, Deferred)
    assert not has_fired(appended)
    return appended


def code_of(append: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as problem:
        append(*arguments, **named)
    return problem.value.code


@pytest.mark.parametrize("error", [ColdDataError(), CorruptDataError("damaged", None)])
def test_a_high_watermark_whose_place_is_not_in_memory_comes_when_it_is_loaded(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Leader()
    world.write(3)
    find_position, looks = LogReader.find_position, list[int]()

    def cold_at_first(reader: LogReader, offset: int, *, may_block: bool = True) -> OffsetPosition:
        looks.append(offset)
        if len(looks) == 1:
            raise error
        return find_position(reader, offset, may_block=may_block)

    monkeypatch.setattr(LogReader, "find_position", cold_at_first)
    world.fetch(2)
    assert world.high_watermark.offset == 0
    world.node.work()
    assert (looks, world.high_watermark.offset) == ([2, 2], 2)
    assert offsets(world.partition) == [0, 1]


def test_a_marker_waits_for_the_in_sync_set_and_ends_its_transaction_then() -> None:
    world = Leader()
    sent = build_batch(
        [(world.node.now_ms, b"k", b"v", [])], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    world.partition.append(sent, world.node.now_ms, guard=NOT_VERIFIED)
    marked = waiting(world.partition.append_marker(Marker(7, 0, 0, True, 0), world.node.now_ms))
    world.fetch(1)
    assert (world.high_watermark.offset, world.partition.last_stable_offset) == (1, 0)
    world.fetch(2)
    assert outcome(marked).base_offset == 1
    assert world.partition.last_stable_offset == 2


def test_markers_and_coordinators_records_need_enough_replicas() -> None:
    world = Leader(in_sync=(1,), config=LogConfig(min_insync_replicas=2))
    now_ms = world.node.now_ms
    assert code_of(world.partition.append_to_all, world.node.batch(), now_ms) is ErrorCode.NOT_ENOUGH_REPLICAS
    marker = Marker(7, 0, 0, True, 0)
    assert code_of(world.partition.append_marker, marker, now_ms) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.partition.log.log_end_offset == 0


def test_a_coordinators_record_in_line_for_a_segment_waits_for_the_replicas_after_it() -> None:
    world = Leader(config=LogConfig(segment_bytes=300))
    world.write(2)
    appended = waiting(world.partition.append_to_all(world.node.batch(), world.node.now_ms))
    world.node.work()
    assert not has_fired(appended)
    world.fetch(3)
    assert outcome(appended).base_offset == 2


def test_a_follower_takes_nothing_from_clients() -> None:
    world = Leader()
    appended = waiting(world.partition.append_to_all(world.node.batch(), world.node.now_ms))
    assert world.partition.become_follower(2, EPOCH + 2)
    assert refusal(appended) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition, now_ms = world.partition, world.node.now_ms
    lost = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(partition.append, world.node.batch(), now_ms) is lost
    assert code_of(partition.append_to_all, world.node.batch(), now_ms) is lost
    assert code_of(partition.append_marker, Marker(7, 0, 0, True, 0), now_ms) is lost
    assert code_of(partition.guard, 7, 0, 0, begins_at_zero=True) is lost
    assert code_of(partition.check_enough_in_sync) is lost
    assert code_of(partition.progress.low_watermark) is lost
    late = partition.wait_for_replicas(1)
    assert late is not None
    assert refusal(late) is lost


def test_a_replica_without_a_role_shows_what_it_knows_to_be_replicated() -> None:
    world = Leader()
    world.write(3)
    log, home = world.partition.log, world.partition.state.host
    replica = Partition(log, home, -1, log.reader.locate(1))
    assert (replica.is_leader, replica.high_watermark.offset, replica.leader_epoch) == (False, 1, -1)
    assert code_of(replica.append, world.node.batch(), 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(replica.read, 0, 100, at_least_one_batch=True) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert offsets(replica) == [0]
    assert replica.become_leader(world.view, EPOCH + 2, (1, 2), (1, 2), 2, world.node.now_ms)
    assert replica.high_watermark.offset == 1
    assert offsets(replica) == [0]


def test_a_replica_alone_goes_on_as_a_single_node_does() -> None:
    world = Leader()
    world.write(3)
    log, home = world.partition.log, world.partition.state.host
    replica = Partition(log, home, -1, log.reader.locate(1))
    assert replica.become_leader(world.view, EPOCH + 2, (1,), (1,), 2, world.node.now_ms)
    assert replica.high_watermark == log.end_position()
    assert not isinstance(replica.append_to_all(world.node.batch(), world.node.now_ms), Deferred)
    assert offsets(replica) == [0, 1, 2, 3]


def test_more_replicas_do_not_hold_up_what_was_visible() -> None:
    world = Leader()
    world.lead(EPOCH + 1, (1,), (1,), 2)
    world.write(2)
    world.lead(EPOCH + 1, (1, 2), (1,), 3)
    world.write()
    assert world.high_watermark.offset == 3  # the new replica lags and is not waited for
    world.fetch(3)
    assert world.updates.proposed() == [[1, 2]]
    world.write()
    assert world.high_watermark.offset == 3
    world.fetch(4)
    assert world.high_watermark.offset == 4


def test_a_move_keeps_the_high_watermark_and_finds_its_place() -> None:
    world = Leader("/a", "/b")
    world.write(4)
    world.fetch(2)
    world.node.replicas.move("t", 0, "/b")
    for _ in range(20):
        world.node.sync()
    assert world.partition.log.directory.startswith("/b")
    assert world.high_watermark.offset == 2
    assert offsets(world.partition) == [0, 1]
    world.fetch(4)
    assert offsets(world.partition) == [0, 1, 2, 3]


def test_a_flush_that_is_due_after_some_records_is_waited_for() -> None:
    world = Leader(config=LogConfig(flush_messages=2))
    assert not isinstance(world.partition.append(world.node.batch(), world.node.now_ms), Deferred)
    appended = waiting(world.partition.append(world.node.batch(), world.node.now_ms))
    world.fetch(2)
    assert world.high_watermark.offset < 2
    world.node.sync()
    assert has_fired(appended)
    assert world.high_watermark.offset == 2


def test_checks_of_a_partition_without_followers_do_nothing() -> None:
    node = Node()
    node.open(topic())
    partition = node.replicas.find("t", 0)
    partition.check_in_sync(node.now_ms)
    assert partition.become_follower(2, EPOCH + 1)
    partition.check_in_sync(node.now_ms)
    assert partition.state.leader_id == 2


def fetched(world: Leader, offset: int, epoch: int) -> bytes:
    """A batch as another leader has it."""
    return build_batch([(world.node.now_ms, b"k", b"v" * 100, [])], base_offset=offset, leader_epoch=epoch)


def test_an_elected_follower_counts_its_own_records_once_they_are_synced() -> None:
    world = Leader(syncs_always=True)
    assert world.partition.become_follower(2, EPOCH + 2)
    following = world.partition.follower
    appended = waiting(following.append_fetched(fetched(world, 0, EPOCH + 2), 0, 0, world.node.now_ms))
    world.lead(EPOCH + 3, (1, 2), (1,), 3)
    assert refusal(appended) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (world.partition.log.log_end_offset, world.high_watermark.offset) == (1, 0)
    world.node.sync()
    assert world.high_watermark.offset == 1


def test_an_elected_follower_drops_what_waited_for_a_segment() -> None:
    world = Leader(config=LogConfig(segment_bytes=300))
    assert world.partition.become_follower(2, EPOCH + 2)
    following = world.partition.follower
    records = b"".join(fetched(world, offset, EPOCH + 2) for offset in range(3))
    appended = waiting(following.append_fetched(records, 0, 0, world.node.now_ms))
    world.lead(EPOCH + 3, (1, 2), (1,), 3)
    assert refusal(appended) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.node.work()
    end_offset = world.partition.log.log_end_offset
    assert end_offset < 3
    world.write()
    assert world.partition.log.leader_epochs.entries[-1] == (EPOCH + 3, end_offset)
    assert offsets(world.partition) == list(range(end_offset + 1))


def test_a_partition_that_is_being_truncated_cannot_be_led_yet() -> None:
    world = Leader()
    world.write(2)
    assert world.partition.become_follower(2, EPOCH + 2)
    cut = world.partition.follower.truncate(1)
    with pytest.raises(AssertionError, match="being truncated"):
        world.lead(EPOCH + 3, (1, 2), (1,), 3)
    world.node.work()
    assert has_fired(cut)
    world.lead(EPOCH + 3, (1, 2), (1,), 3)
    assert offsets(world.partition) == [0]


def test_what_a_leader_has_not_synced_is_synced_when_it_follows() -> None:
    world = Leader(syncs_always=True)
    waiting(world.partition.append(world.node.batch(), world.node.now_ms)).addErrback(lambda _: None)
    world.node.clock.advance(0)  # the round has begun
    waiting(world.partition.append(world.node.batch(), world.node.now_ms)).addErrback(lambda _: None)
    assert world.partition.become_follower(2, EPOCH + 2)
    world.node.sync()
    assert (world.partition.log.recovery_point, world.partition.log.log_end_offset) == (2, 2)


@pytest.mark.parametrize(("epoch", "before_fetch"), [(EPOCH + 2, 5), (EPOCH + 3, 2)])
def test_ends_from_before_another_leader_do_not_count(epoch: int, before_fetch: int) -> None:
    world = Leader()
    world.lead(EPOCH + 1, (1, 2, 3), (1, 2, 3), 2)
    world.write(5)
    world.fetch(2)
    world.fetch(5, replica=3)
    assert world.high_watermark.offset == 2
    # Where an epoch is left out, broker 2 has led in it, and broker 3 may have cut its log to that of broker 2.
    world.lead(epoch, (1, 2, 3), (1, 3), 4)
    assert world.high_watermark.offset == before_fetch
    world.fetch(5, replica=3)
    assert world.high_watermark.offset == 5
