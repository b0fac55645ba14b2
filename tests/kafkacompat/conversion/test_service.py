"""What is converted at once, what elsewhere, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.conversion import Conversions, ConvertedRecords, service
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment_file import FileRegion
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.message_set import entry_writer, read_message_set, wrap
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.metadata.deferreds import has_fired, outcome, refusal
from tests.kafkacompat.replication.node import Node, topic

LARGE = bytes(service.IN_PLACE_BYTES)
NO_LIMIT = 1 << 30


class World:
    """Partition 0 of t with one large batch, behind it one of some bytes."""

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

    def down(self, offset: int = 0, magic: int = 1) -> ConvertedRecords | Deferred[ConvertedRecords]:
        return self.conversions.down(self.partition.log, self.region(offset), magic, offset, NO_LIMIT)

    def converted(self, offset: int = 0, magic: int = 1) -> FileRegion:
        result = self.down(offset, magic)
        self.node.work()
        found = outcome(result) if isinstance(result, Deferred) else result
        assert isinstance(found.records, FileRegion)
        return found.records


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.conversions.close()
    assert made.node.files.open_handles == made.handles


def offsets(region: FileRegion) -> list[int]:
    return [message.offset for message in read_message_set(region.pread(0, region.size_bytes))]


def test_a_little_is_converted_at_once(world: World) -> None:
    result = world.down(1)
    assert isinstance(result, ConvertedRecords)
    assert isinstance(result.records, bytes)
    assert result.next_offset == 2


def test_what_is_not_in_memory_is_read_elsewhere(world: World) -> None:
    region = world.region(1)
    world.node.files.cold = True
    result = world.conversions.down(world.partition.log, region, 1, 1, NO_LIMIT)
    assert isinstance(result, Deferred)
    world.node.work()
    found = outcome(result).records
    assert isinstance(found, FileRegion)
    found.release()


def test_the_same_is_not_converted_again_while_it_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        region = world.converted()
        assert offsets(region) == [0, 1]
        region.release()
    assert len(world.workers.calls) == 1
    world.converted(magic=0).release()
    assert len(world.workers.calls) == 2
    monkeypatch.setattr(service, "KEPT_BYTES", 2 * len(LARGE))
    first = world.converted(magic=1)
    world.partition.append(build_batch([(world.node.now_ms, b"k", b"v", [])]), world.node.now_ms)
    world.converted(magic=1).release()
    assert len(world.workers.calls) == 3
    # The one used least lately had to go, yet who has it may send it.
    assert len(offsets(first)) == 2
    first.release()
    world.converted(magic=0).release()
    assert len(world.workers.calls) == 4


def test_two_who_ask_at_the_same_time_get_the_same(world: World) -> None:
    results = [world.down(), world.down()]
    world.node.work()
    for each in results:
        assert isinstance(each, Deferred)
        found = outcome(each).records
        assert isinstance(found, FileRegion)
        found.release()


def test_who_does_not_want_it_any_more_leaves_nothing_open(world: World) -> None:
    result = world.down()
    assert isinstance(result, Deferred)
    result.addErrback(lambda _: None)
    result.cancel()
    world.node.work()
    assert world.workers.calls == []
    assert world.node.files.open_handles == world.handles


def test_what_was_refused_is_not_kept(world: World) -> None:
    world.partition.append(build_batch([(0, None, LARGE, [])], codec=4), world.node.now_ms)
    for _ in range(2):
        result = world.down(2)
        assert isinstance(result, Deferred)
        world.node.work()
        assert refusal(result) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert len(world.workers.calls) == 2


def test_an_empty_outcome_has_no_records(world: World) -> None:
    control = build_batch([(0, b"k" * 4, LARGE, [])], control=True)
    world.partition.append(control, world.node.now_ms, from_client=False)
    result = world.down(2)
    assert isinstance(result, Deferred)
    world.node.work()
    assert outcome(result) == ConvertedRecords(None, 3)


def test_small_sets_are_converted_up_at_once_unless_compressed(world: World) -> None:
    message = entry_writer(1, 0)(0, 1000, b"k", b"v")
    assert isinstance(world.conversions.up(message, LogConfig()), bytes)
    for data in (wrap(1, 1, 0, 1000, message), entry_writer(1, 0)(0, 1000, None, LARGE)):
        result = world.conversions.up(data, LogConfig())
        assert isinstance(result, Deferred)
        assert not has_fired(result)
        world.node.work()
        assert isinstance(outcome(result), bytes)
