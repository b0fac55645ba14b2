"""What is converted at once, what elsewhere, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.conversion import Conversions, ConvertedRecords, RegionToConvert, service, spool
from kafkacompat.conversion.job import Outcome
from kafkacompat.storage.intake.preparation import take_in
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import make_entry_writer, read_message_set, wrap_messages
from kafkacompat.wire.record_batch import NewRecord, build_batch
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.partitions.node import Node, topic

LARGE = bytes(service.IN_PLACE_BYTES)
NO_LIMIT = 1 << 30
GZIP = 1
MESSAGE = make_entry_writer(1, 0)(0, 1000, b"k", b"v")


class World:
    """Partition 0 of t with one large batch and, after it, one of some bytes."""

    def __init__(self) -> None:
        self.node = Node()
        self.node.open(topic("t"))
        self.partition = self.node.replicas.find("t", 0)
        for value in (LARGE, b"v"):
            self.partition.append(build_batch([(self.node.now_ms, b"k", value, [])]), self.node.now_ms)
        self.workers = ManualWorkers(self.node.disks[0])
        self.conversions = Conversions(self.workers, self.node.files)
        self.handles = self.node.files.open_handles

    def region(self, offset: int = 0) -> FileRegion:
        region = self.partition.log.read(offset, NO_LIMIT)
        assert region is not None
        return region

    def wanted(self, offset: int = 0) -> RegionToConvert:
        return RegionToConvert(self.partition.log, self.region(offset), offset, NO_LIMIT)

    def down(self, *offsets: int, magic: int = 1) -> list[Outcome] | Deferred[list[Outcome]]:
        return self.conversions.down_convert([self.wanted(offset) for offset in offsets or (0,)], magic)

    def converted(self, offset: int = 0, magic: int = 1) -> FileRegion:
        result = self.down(offset, magic=magic)
        self.node.work()
        (region,) = list_regions(outcome(result) if isinstance(result, Deferred) else result)
        return region

    def append(self, *records: NewRecord, codec: int = 0) -> None:
        self.partition.append(build_batch(records, codec=codec), self.node.now_ms)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.conversions.close()
    assert made.node.files.open_handles == made.handles


def list_regions(outcomes: list[Outcome]) -> list[FileRegion]:
    regions = []
    for converted in outcomes:
        assert isinstance(converted, ConvertedRecords)
        assert isinstance(converted.records, FileRegion)
        regions.append(converted.records)
    return regions


def list_offsets(region: FileRegion) -> list[int]:
    return [message.offset for message in read_message_set(region.pread(0, region.size_bytes))]


def test_a_little_is_converted_at_once(world: World) -> None:
    result = world.down(1)
    assert isinstance(result, list)
    (converted,) = result
    assert isinstance(converted, ConvertedRecords)
    assert isinstance(converted.records, bytes)
    assert converted.next_offset == 2


def test_many_small_conversions_together_go_to_a_worker(world: World) -> None:
    """Hundreds of partitions with a little each would hold up everybody else."""
    for _ in range(2):
        world.append((world.node.now_ms, b"k", LARGE[: len(LARGE) // 2 - 200], []))
    alone = world.down(3)
    assert isinstance(alone, list)
    together = world.down(3, 3, 3)
    assert isinstance(together, Deferred)
    world.node.work()
    for region in list_regions(outcome(together)):
        assert list_offsets(region) == [3]
        region.release()


def test_cold_batches_are_converted_in_a_worker(world: World) -> None:
    wanted = world.wanted(1)
    world.node.files.cold = True
    result = world.conversions.down_convert([wanted], 1)
    assert isinstance(result, Deferred)
    world.node.work()
    list_regions(outcome(result))[0].release()


def test_many_small_pieces_share_a_file(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old client may ask for thousands of partitions, and there are fewer descriptors than that."""
    for number in range(20):
        world.append((world.node.now_ms, b"%d" % number, b"v", []), codec=GZIP)
    before = world.node.files.open_handles
    result = world.down(*range(2, 22))
    assert isinstance(result, Deferred)
    world.node.work()
    pieces = list_regions(outcome(result))
    assert world.node.files.open_handles == before + 1
    assert [list_offsets(piece)[0] for piece in pieces] == list(range(2, 22))
    for piece in pieces:
        piece.release()
    monkeypatch.setattr(spool, "FILE_BYTES", 1)
    for offset in range(2, 5):
        world.converted(offset, magic=0).release()
    assert world.node.files.open_handles == before + 4


def test_no_more_are_kept_than_files_may_be_open(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_KEPT", 3)
    for number in range(10):
        world.append((world.node.now_ms, b"%d" % number, b"v", []), codec=GZIP)
        world.converted(2 + number).release()
    assert world.node.files.open_handles <= world.handles + 3


def test_the_same_is_not_converted_again_while_it_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        region = world.converted()
        assert list_offsets(region) == [0, 1]
        region.release()
    assert len(world.workers.calls) == 1
    world.converted(magic=0).release()
    assert len(world.workers.calls) == 2
    monkeypatch.setattr(service, "KEPT_BYTES", 2 * len(LARGE))
    first = world.converted(magic=1)
    world.partition.append(build_batch([(world.node.now_ms, b"k", b"v", [])]), world.node.now_ms)
    world.converted(magic=1).release()
    assert len(world.workers.calls) == 3
    # The service dropped the conversion that was used least recently, yet its holder may still send it.
    assert len(list_offsets(first)) == 2
    first.release()
    world.converted(magic=0).release()
    assert len(world.workers.calls) == 4


def test_one_answer_is_converted_for_a_limited_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty partitions of a megabyte, well compressed, took longer than clients wait; and all others waited as well."""
    for _ in range(4):
        world.append((world.node.now_ms, b"k", LARGE, []), codec=GZIP)
    monkeypatch.setattr(service, "ENOUGH_UNPACKED_BYTES", 3 * len(LARGE))
    result = world.down(2, 3, 4, 5)
    assert isinstance(result, Deferred)
    world.node.work()
    *converted, put_off = outcome(result)
    # A share of three quarters is one batch: nobody gets a second one before each has the first.
    for region, offset in zip(list_regions(converted), (2, 3, 4), strict=True):
        assert list_offsets(region) == [offset]
        region.release()
    assert put_off == ConvertedRecords(None, 5)
    # The empty result is not kept as the conversion of that offset.
    region = world.converted(5)
    assert list_offsets(region) == [5]
    region.release()


def test_two_requests_at_the_same_time_share_a_conversion(world: World) -> None:
    results = [world.down(0, 0), world.down()]
    world.node.work()
    for result in results:
        assert isinstance(result, Deferred)
        for region in list_regions(outcome(result)):
            assert list_offsets(region) == [0, 1]
            region.release()


def test_a_cancelled_conversion_leaves_no_open_files(world: World) -> None:
    result = world.down()
    assert isinstance(result, Deferred)
    result.addErrback(lambda _: None)
    result.cancel()
    world.node.work()
    assert world.workers.calls == []
    assert world.node.files.open_handles == world.handles


def test_a_failed_conversion_is_not_kept(world: World) -> None:
    world.partition.append(build_batch([(0, None, LARGE, [])], codec=4), world.node.now_ms)
    for _ in range(2):
        result = world.down(2)
        assert isinstance(result, Deferred)
        world.node.work()
        (problem,) = outcome(result)
        assert isinstance(problem, KafkaError)
        assert problem.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert len(world.workers.calls) == 2


def test_an_empty_outcome_has_no_records(world: World) -> None:
    control = build_batch([(0, b"k" * 4, LARGE, [])], control=True)
    world.partition.append(control, world.node.now_ms, from_client=False)
    result = world.down(2)
    assert isinstance(result, Deferred)
    world.node.work()
    assert outcome(result) == [ConvertedRecords(None, 3)]


def test_conversions_at_a_stop_are_released(world: World) -> None:
    left, stopped = world.down(), world.down()
    assert isinstance(left, Deferred)
    assert isinstance(stopped, Deferred)
    left.addErrback(lambda _: None)
    left.cancel()
    world.conversions.close()
    world.node.work()
    assert refusal(stopped) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.node.files.open_handles == world.handles


def test_nothing_is_appended_once_the_broker_closes_its_logs(world: World) -> None:
    world.conversions.check_open()
    world.conversions.close()
    with pytest.raises(KafkaError) as refused:
        world.conversions.check_open()
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_message_set_prepared_in_a_worker_is_a_batch(world: World) -> None:
    messages = wrap_messages(1, 1, 0, 1000, MESSAGE)
    taken = world.conversions.check_and_prepare(memoryview(messages), LogConfig(), 1000)
    assert not has_fired(taken)
    world.node.work()
    batch = outcome(taken)
    assert batch == take_in(messages, LogConfig(), 1000)
    again = world.conversions.check_and_prepare(batch, LogConfig(), 1000)
    world.node.work()
    assert outcome(again) is batch
