"""The scrub: what it reads, how fast, and what becomes of what it finds."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.directory.scrub_notes import FILE_NAME
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.scrub import ScrubExtent
from kafkacompat.upkeep.scrubbing import FIRST_DELAY_S, LogScrubber
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.workers.processes import CodeReplacedError
from tests.fakes.disk import ManualDisk
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.partitions.node import Node, topic

INTERVAL_MS = 3_600_000
RECORDS = build_batch([(1_700_000_000_000, b"k", b"v" * 100, [])])
SEGMENT_BATCHES = 5


class World:
    """A partition with rolled segments of five batches each on a real disk, and a scrub that reads two batches a second."""

    def __init__(self, folder: Path, batches: int = 12, interval_ms: int = INTERVAL_MS) -> None:
        files: Any = OsFiles()
        self.node = Node(str(folder), files=files, config=LogConfig(segment_bytes=len(RECORDS) * SEGMENT_BATCHES))
        self.node.open(topic())
        self.partition: Partition = self.node.replicas.find("t", 0)
        for _ in range(batches):
            self.partition.append(RECORDS, self.node.now_ms)
            self.node.work()
        self.disk = ManualDisk()
        self.workers = ManualWorkers(self.disk)
        config = {
            "node.id": "1",
            "kafkacompat.scrub.interval.ms": str(interval_ms),
            "kafkacompat.scrub.max.bytes.per.second": str(len(RECORDS) * 2),
            "log.dirs": str(folder),
        }
        self.config = BrokerConfig(config)
        self.start()

    def start(self) -> None:
        """Begin, as a process does that knows nothing but what is in the files."""
        self.workers = ManualWorkers(self.disk)
        for segment in self.partition.log.segments:
            segment.corrupt = ()
        self.scrubbing = LogScrubber(self.node.clock, self.config, self.node.files, self.node.replicas, self.workers)
        self.scrubbing.start()
        self.disk.work()

    def restart(self) -> None:
        self.scrubbing.stop()
        self.start()

    def work_for(self, seconds: int) -> list[tuple[int, int]]:
        """Let time pass; returns the base offsets of the segments that pieces were read of, and from where on."""
        pieces: list[tuple[int, int]] = []
        workers, scrub = self.workers, self.workers.call

        def noted(name: str, extent: ScrubExtent, position: int, *arguments: Any) -> Any:
            pieces.append((int(Path(extent.path).name.split(".")[0]), position))
            return scrub(name, extent, position, *arguments)

        workers.call = noted  # type: ignore[method-assign]
        for _ in range(seconds):
            self.step(1)
        workers.call = scrub  # type: ignore[method-assign]
        return pieces

    def segment(self, slot: int) -> Path:
        return Path(self.partition.log.segments[slot].files.path(".log"))

    def damage(self, slot: int, batch: int, byte: int = 80) -> None:
        path = self.segment(slot)
        data = bytearray(path.read_bytes())
        data[batch * len(RECORDS) + byte] ^= 1
        path.write_bytes(data)

    def step(self, seconds: float) -> int:
        """Let time pass; returns how many pieces were read then."""
        before = len(self.workers.calls)
        self.node.clock.advance(seconds)
        self.disk.work()
        return len(self.workers.calls) - before


def test_a_round_reads_every_rolled_segment_once_at_its_rate(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert [segment.sealed for segment in world.partition.log.segments] == [True, True, False]
    assert world.step(FIRST_DELAY_S - 1) == 0
    assert world.step(1) == 1
    # Five batches are three pieces of two, two and one; each second has room for two.
    pieces = [world.step(0.5) for _ in range(20)]
    assert sum(pieces) + 1 == 6
    assert pieces[:3] == [0, 1, 0]
    assert world.step(INTERVAL_MS / 1000 - 30) == 0
    assert world.step(30) == 1


def test_damage_is_recorded_and_logged_and_the_round_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.damage(0, 1)
    world.damage(1, 4, byte=9)
    with caplog.at_level(logging.ERROR):
        for _ in range(FIRST_DELAY_S + 20):
            world.step(1)
    assert [
        (bad.first_offset, bad.last_offset) for bads in world.partition.log.examiner.corrupt.values() for bad in bads
    ] == [
        (1, 1),
        (9, 9),
    ]
    assert len(caplog.messages) == 2 and "offsets 1 to 1" in caplog.messages[0]
    with pytest.raises(CorruptDataError):
        world.partition.read(9, 1000, at_least_one_batch=True)
    read = world.partition.read(8, 1000, at_least_one_batch=True)
    assert read.size_bytes == len(RECORDS)
    assert world.partition.read(10, 1000, at_least_one_batch=True).size_bytes == 2 * len(RECORDS)


def test_a_segment_that_is_gone_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    world.damage(0, 0)
    world.node.clock.advance(FIRST_DELAY_S)
    log = world.partition.log
    gone = [log.segments[0]]
    log.trimmer.detach(gone)
    log.trimmer.delete_segments(gone)
    with caplog.at_level(logging.ERROR):
        world.disk.work()
        for _ in range(20):
            world.step(1)
    assert log.examiner.corrupt == {} and caplog.messages == []
    assert len(world.workers.calls) == 1 + 3


def test_an_unreadable_file_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    world.segment(0).rename(tmp_path / "elsewhere")
    with caplog.at_level(logging.ERROR):
        for _ in range(FIRST_DELAY_S + 20):
            world.step(1)
    (message,) = caplog.messages
    assert "cannot be read" in message
    assert len(world.workers.calls) == 2 + 3


def test_a_defect_is_logged_and_the_round_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    scrub, first = world.workers.call, str(world.segment(0))

    def failing(name: str, extent: ScrubExtent, *arguments: Any) -> Any:
        result = scrub(name, extent, *arguments)
        return result if extent.path != first else result.no_such_thing

    monkeypatch.setattr(world.workers, "call", failing)
    with caplog.at_level(logging.ERROR):
        for _ in range(FIRST_DELAY_S + 20):
            world.step(1)
    (record,) = caplog.records
    assert first in record.getMessage() and record.exc_info
    assert len(world.workers.calls) == 1 + 3


def test_a_segment_that_gets_its_name_meanwhile_is_read_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.damage(0, 1)
    segment = world.partition.log.segments[0]
    segment.files.rename(".swap")
    world.node.clock.advance(FIRST_DELAY_S)
    segment.files.rename("")
    with caplog.at_level(logging.ERROR):
        for _ in range(20):
            world.step(1)
    assert ["is damaged" in message for message in caplog.messages] == [True]


def test_a_round_goes_on_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, batches=22)
    step, begun_s = SEGMENT_BATCHES, world.node.clock.seconds() + FIRST_DELAY_S
    assert {base for base, _ in world.work_for(FIRST_DELAY_S + 4)} == {0, step}
    world.restart()
    assert [base for base, position in world.work_for(FIRST_DELAY_S + 20) if not position] == [step, 2 * step, 3 * step]
    world.restart()
    assert world.work_for(FIRST_DELAY_S + 20) == []
    world.step(begun_s + INTERVAL_MS / 1000 - world.node.clock.seconds() - 1)
    assert [base for base, position in world.work_for(20) if not position] == [0, step, 2 * step, 3 * step]


def test_damaged_segments_are_read_first_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, batches=22)
    world.damage(1, 3)
    world.work_for(FIRST_DELAY_S + 20)
    assert list(world.partition.log.examiner.corrupt) == [SEGMENT_BATCHES]
    world.restart()
    assert world.partition.log.examiner.corrupt == {}
    assert {base for base, _ in world.work_for(FIRST_DELAY_S)} == {SEGMENT_BATCHES}
    assert list(world.partition.log.examiner.corrupt) == [SEGMENT_BATCHES]


@pytest.mark.parametrize("contents", [b"", b"[" * 100_000, b'{"begunMs": 1, "reached": 7, "damaged": []}', b"\xff{}"])
def test_with_notes_that_make_no_sense_a_round_begins(tmp_path: Path, contents: bytes) -> None:
    world = World(tmp_path)
    world.work_for(FIRST_DELAY_S + 20)
    (tmp_path / FILE_NAME).write_bytes(contents)
    world.restart()
    assert {base for base, _ in world.work_for(FIRST_DELAY_S + 20)} == {0, SEGMENT_BATCHES}


def test_unwritable_notes_are_logged_and_the_round_continues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = World(tmp_path)
    (tmp_path / FILE_NAME).mkdir()
    world.restart()
    assert {base for base, _ in world.work_for(FIRST_DELAY_S + 20)} == {0, SEGMENT_BATCHES}
    assert all("the notes of the scrub" in message for message in caplog.messages) and caplog.messages


def test_without_workers_of_the_same_code_it_waits_for_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    refused = []

    def refuse(*_: Any) -> Any:
        refused.append(1)
        raise CodeReplacedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "restart it")

    monkeypatch.setattr(world.workers, "call", refuse)
    for _ in range(5):
        world.step(INTERVAL_MS / 1000)
    assert len(refused) == 1 and caplog.messages == []
    world.scrubbing.stop()


def test_a_stop_ends_the_scrubber_before_its_first_round(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node.clock.advance(FIRST_DELAY_S)
    world.scrubbing.stop()
    assert world.workers.closed
    assert world.step(100) == 0
    assert world.node.clock.getDelayedCalls() == []
    never = World(tmp_path / "other", interval_ms=-1)
    assert never.step(10 * INTERVAL_MS) == 0
