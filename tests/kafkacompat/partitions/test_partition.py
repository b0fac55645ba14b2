"""One partition: appends in line, high watermark, epochs, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log.maintenance import LogMaintenance
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.partitions.partitions import NOW_MS, World, batch

TWO_BATCHES = LogConfig(segment_bytes=2 * len(batch()))


class Watcher:
    def __init__(self) -> None:
        self.bytes = 0
        self.woken = False

    def note_bytes(self, size_bytes: int) -> None:
        self.bytes += size_bytes

    def wake(self) -> None:
        self.woken = True


def refusals(waiting: object) -> list[ErrorCode]:
    """Codes with which an append that waits is refused, one at most."""
    assert isinstance(waiting, Deferred)
    codes: list[ErrorCode] = []

    def note(failure: Failure) -> None:
        assert isinstance(failure.value, KafkaError)
        codes.append(failure.value.code)

    waiting.addErrback(note)
    return codes


def test_an_append_moves_the_high_watermark_and_tells_who_waits(tmp_path: Path) -> None:
    world, watcher = World(tmp_path), Watcher()
    world.partition.watch(watcher, committed=False)
    assert world.append(batch(count=3)).base_offset == 0
    assert world.partition.high_watermark.offset == 3
    assert watcher.bytes == len(batch(count=3))


def test_appends_wait_in_line_for_a_new_segment(tmp_path: Path) -> None:
    world = World(tmp_path, TWO_BATCHES)
    world.append()
    world.append()
    waiting = [world.partition.append(batch(), NOW_MS) for _ in range(5)]
    assert all(isinstance(append, Deferred) for append in waiting)
    assert world.partition.high_watermark.offset == 2
    world.disk.work()
    offsets: list[int] = []
    for append in waiting:
        assert isinstance(append, Deferred)
        append.addCallback(lambda result: offsets.append(result.base_offset))
    assert offsets == [2, 3, 4, 5, 6]
    assert [segment.base_offset for segment in world.partition.log.segments] == [0, 2, 4, 6]
    assert isinstance(world.partition.append(batch(), NOW_MS), AppendResult)


def test_a_refused_batch_in_line_does_not_hold_up_the_next(tmp_path: Path) -> None:
    world = World(tmp_path, TWO_BATCHES)
    world.append()
    world.append()
    first = world.partition.append(batch(), NOW_MS)
    broken = world.partition.append(batch()[:-1] + b"x", NOW_MS)
    last = world.partition.append(batch(), NOW_MS)
    assert isinstance(first, Deferred) and isinstance(broken, Deferred) and isinstance(last, Deferred)
    codes = refusals(broken)
    world.disk.work()
    assert codes == [ErrorCode.CORRUPT_MESSAGE]
    offsets: list[int] = []
    last.addCallback(lambda result: offsets.append(result.base_offset))
    assert offsets == [3]


def test_an_append_from_within_an_answer_does_not_overtake_the_line(tmp_path: Path) -> None:
    """A client's next request starts in the middle of its answer: here it needs one more segment itself."""
    world = World(tmp_path, LogConfig(segment_bytes=len(batch())))
    world.append()
    order: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[AppendResult], None]:
        return lambda result: order.append((name, result.base_offset))

    def next_request(result: AppendResult) -> None:
        note("first")(result)
        again = world.partition.append(batch(), NOW_MS)
        assert isinstance(again, Deferred)
        again.addCallback(note("again"))

    first, second = (world.partition.append(batch(), NOW_MS) for _ in range(2))
    assert isinstance(first, Deferred) and isinstance(second, Deferred)
    first.addCallback(next_request)
    second.addCallback(note("second"))
    world.disk.work()
    assert order == [("first", 1), ("second", 2), ("again", 3)]
    assert [segment.base_offset for segment in world.partition.log.segments] == [0, 1, 2, 3]
    assert world.failures == []


def test_a_new_epoch_begins_before_its_first_record(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.partition.log.reader.offset_for_leader_epoch(3) == (3, 0)


def test_flush_messages_answers_only_after_the_sync(tmp_path: Path) -> None:
    world = World(tmp_path, LogConfig(flush_messages=1))
    result = world.partition.append(batch(), NOW_MS)
    assert isinstance(result, Deferred)
    assert not result.called
    world.work()
    assert result.called
    assert world.partition.log.recovery_point == 1


def test_closing_refuses_what_waits(tmp_path: Path) -> None:
    world, watcher = World(tmp_path, TWO_BATCHES), Watcher()
    world.append()
    world.append()
    waiting = world.partition.append(batch(), NOW_MS)
    codes = refusals(waiting)
    world.partition.watch(watcher, committed=False)
    world.partition.close_to_clients(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone"))
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert watcher.woken
    world.disk.work()
    assert world.partition.log.log_end_offset == 2


def test_a_segment_that_cannot_be_made_takes_the_log_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, TWO_BATCHES)
    world.append()
    world.append()

    def fail(_maintenance: LogMaintenance, _base_offset: int) -> None:
        world.partition.log.take_offline("its disk failed")
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

    monkeypatch.setattr(LogMaintenance, "prepare_segment", fail)
    waiting = world.partition.append(batch(), NOW_MS)
    codes = refusals(waiting)
    world.disk.work()
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert len(world.failures) == 1


@pytest.mark.parametrize(("epoch", "code"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_other_epochs_are_refused(tmp_path: Path, epoch: int, code: ErrorCode) -> None:
    partition = World(tmp_path).partition
    partition.check_epoch(-1)
    partition.check_epoch(3)
    with pytest.raises(KafkaError) as caught:
        partition.read(0, 100, at_least_one_batch=True, current_leader_epoch=epoch)
    assert caught.value.code == code


def test_a_fetcher_whose_log_diverges_is_told_where(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append()
    ahead = world.partition.read(5, 100, at_least_one_batch=True, last_fetched_epoch=3)
    assert ahead.diverging_epoch == (3, 1)
    assert ahead.region is None
    in_step = world.partition.read(1, 100, at_least_one_batch=True, last_fetched_epoch=3)
    assert in_step.diverging_epoch is None


def test_reading_outside_the_log_is_refused_and_at_its_end_is_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.append()
    at_end = world.partition.read(1, 100, at_least_one_batch=True)
    assert (at_end.size_bytes, at_end.high_watermark, at_end.log_start_offset) == (0, 1, 0)
    with pytest.raises(KafkaError) as caught:
        world.partition.read(2, 100, at_least_one_batch=True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
