"""The hourly records of a broker, over crashes and failures of the topic and of the disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kafkacompat.usage.figures import InstanceUsage
from kafkacompat.usage.hours import HOUR_MS, UsageRecord
from kafkacompat.usage.recorder import UsageRecorder
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import has_fired, outcome
from tests.kafkacompat.usage.test_hours import usage

BEGIN_S = 1_700_000_000 // 3600 * 3600
HOUR_S = HOUR_MS // 1000


class World:
    """The topic, the file and the figures of a broker, which outlive its process."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(BEGIN_S)
        self.written: list[UsageRecord] = []
        self.file: bytes | None = None
        self.topic_error: Exception | None = None
        self.file_error: Exception | None = None
        self.usages: dict[str, InstanceUsage] = {}
        self.recorder = self.start()

    def start(self) -> UsageRecorder:
        self.recorder = UsageRecorder(1, self, self, self, self.clock)  # type: ignore[arg-type]
        self.recorder.start()
        return self.recorder

    def crash(self) -> None:
        """Kill the process: its counters begin anew, and nothing more is kept."""
        calls: Sequence[Any] = self.clock.getDelayedCalls()
        for call in calls:
            call.cancel()
        self.usages = {name: usage() for name in self.usages}

    # The figures

    def list_names(self) -> list[str]:
        return sorted(self.usages)

    def read(self, name: str = "") -> Any:
        """The figures of an instance, or the file."""
        return self.usages.get(name) if name else succeed(self.file)

    # The topic and the file

    def write(self, data: Any, now_ms: int | None = None) -> Deferred[None]:
        if now_ms is not None:
            return self.append(data)
        if self.file_error is not None:
            return fail(self.file_error)
        self.file = data
        return succeed(None)

    def append(self, records: Sequence[UsageRecord]) -> Deferred[None]:
        if self.topic_error is not None:
            return fail(self.topic_error)
        self.written.extend(records)
        return succeed(None)

    def add(self, name: str, produced_bytes: int) -> None:
        known = self.usages.get(name, usage())
        self.usages[name] = known._replace(produced_bytes=known.produced_bytes + produced_bytes)

    def pass_minutes(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance(60)

    def bill(self, name: str) -> int:
        """What a reader of the topic adds up: the last record of each key."""
        records = {record.key: json.loads(record.value) for record in self.written}
        return sum(record["produced_bytes"] for record in records.values() if record["instance"] == name)


@pytest.fixture
def world() -> World:
    return World()


def test_each_instance_has_a_record_at_the_full_hour(world: World) -> None:
    world.add("shop", 100)
    world.add("bank", 7)
    world.pass_minutes(59)
    assert world.written == []
    world.pass_minutes(1)
    assert sorted(record.key for record in world.written) == [
        "bank/2023-11-14T22:00:00Z/1",
        "shop/2023-11-14T22:00:00Z/1",
    ]
    world.pass_minutes(180)
    assert (len(world.written), world.bill("shop"), world.bill("bank")) == (8, 100, 7)


def test_a_crash_loses_at_most_a_minute(world: World) -> None:
    for minute in range(60):
        world.add("shop", 1)
        if minute == 30:
            world.crash()
            world.start()
        world.pass_minutes(1)
    world.pass_minutes(5)
    assert world.bill("shop") == 59


def test_a_stop_loses_nothing(world: World) -> None:
    world.add("shop", 5)
    outcome(world.recorder.stop())
    assert world.clock.getDelayedCalls() == []
    world.usages = {"shop": usage(produced_bytes=2)}
    world.clock.advance(10 * HOUR_S)
    world.start()
    world.pass_minutes(61)
    assert world.bill("shop") == 7


def test_a_crash_after_the_record_was_written_counts_it_once(world: World) -> None:
    world.add("shop", 5)
    world.pass_minutes(59)
    before = world.file
    world.pass_minutes(1)
    assert len(world.written) == 1
    # The file from before the record was written.
    world.crash()
    world.file = before
    world.start()
    world.pass_minutes(60)
    assert world.bill("shop") == 5


def test_records_wait_while_the_topic_cannot_be_written(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.add("shop", 5)
    world.topic_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "two are away")
    world.pass_minutes(150)
    assert world.written == [] and "Cannot write 2 records" in caplog.text
    world.crash()
    world.topic_error = None
    world.start()
    assert (len(world.written), world.bill("shop")) == (2, 5)


def test_a_full_disk_does_not_keep_records_from_the_topic(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.add("shop", 5)
    world.file_error = OSError("the disk is full")
    world.pass_minutes(61)
    assert world.bill("shop") == 5 and "the disk is full" in caplog.text


def test_a_damaged_file_is_reported_and_replaced(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.crash()
    world.file = b"damage"
    world.start()
    assert "cannot be read" in caplog.text and world.file != b"damage"


def test_a_stop_while_the_file_is_read_keeps_what_it_holds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add("shop", 5)
    world.pass_minutes(1)
    world.crash()
    reading: Deferred[bytes | None] = Deferred()
    kept = world.file
    monkeypatch.setattr(world, "read", lambda name="": world.usages.get(name) if name else reading)
    stopped = world.start().stop()
    assert world.file == kept and not has_fired(stopped)
    reading.callback(kept)
    outcome(stopped)
    assert world.file is not None and b'"produced_bytes": 5' in world.file
