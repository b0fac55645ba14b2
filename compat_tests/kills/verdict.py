"""Reading the records back after a kill."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from compat_tests.brokers import ROOT, Broker
from compat_tests.kills.load import COMPACTED, GROUP, KEPT, KEYS, PARTITIONS, SHORTENED, Known, Load
from compat_tests.waiting import until

READER: dict[str, Any] = {**GROUP, "enable.partition.eof": True, "fetch.wait.max.ms": 20}


@dataclass
class Verdict:
    """The numbers of read records, and the problems."""

    records: int = 0
    kills: int = 0
    anomalies: list[str] = field(default_factory=list)
    read_up_to: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    def expect(self, condition: bool, anomaly: str) -> None:
        """Note an anomaly unless a condition holds."""
        if not condition:
            self.anomalies.append(f"after {self.kills} kills: {anomaly}")

    def read_on(self, broker: Broker, load: Load, known: Known) -> None:
        """Read the new records of every partition, at least up to the last one acknowledged before a kill."""
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **READER})
        for name, count in sorted(known.acknowledged.items()):
            start, _ = consumer.get_watermark_offsets(TopicPartition(*name), timeout=30)
            if name[0] == SHORTENED:
                self.expect(start >= known.start_offset, f"{name} begins at {start}, not at {known.start_offset}")
            self._read(consumer, name, max(start, self.read_up_to[name]), count, load)
            self.read_up_to[name] = count
        consumer.close()

    def _read(self, consumer: Consumer, name: tuple[str, int], start: int, end: int, load: Load) -> None:
        last, next_offset = start - 1, start
        for offset, number in read_numbers(consumer, name, start, end):
            self.records += 1
            next_offset = offset + 1
            if offset != last + 1:
                self.expect(_may_miss(consumer, name, last, offset), f"{name}: offset {offset} follows {last}")
            self.expect(number == offset, f"{name}: offset {offset} holds number {number}")
            self.expect(number < load.sent[name], f"{name}: number {number} was never sent")
            last = offset
        self.expect(next_offset >= end, f"{name} ends at {next_offset}, but {end} records were acknowledged")

    def check_commits(self, broker: Broker, load: Load, known: Known) -> None:
        """Check that the committed offset is the last one before the kill, or a later one."""
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **GROUP})
        (committed,) = consumer.committed([TopicPartition(KEPT, 0)], timeout=30)
        consumer.close()
        is_there = known.committed <= committed.offset <= load.committing
        self.expect(is_there, f"offset {committed.offset} is committed, not {known.committed}")

    def read_all(self, broker: Broker, load: Load) -> None:
        """Read everything from the beginning, and the last record of each key."""
        self.read_up_to.clear()
        known = load.known()
        self.read_on(broker, load, known)
        self.check_commits(broker, load, known)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, **READER})
        for partition in range(PARTITIONS):
            name = COMPACTED, partition
            end = load.acknowledged[name]
            numbers = {number for _, number in read_numbers(consumer, name, 0, end)}
            lost = set(range(max(0, end - KEYS), end)) - numbers
            self.expect(not lost, f"{name} lost the last records of keys: {sorted(lost)}")
        consumer.close()

    def verify(self, broker: Broker) -> None:
        """`kafkacompat log verify` has no complaint."""
        command = [sys.executable, "-m", "kafkacompat", "log", "verify", str(broker.data_folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=broker.environment(), check=False)
        self.expect(done.returncode == 0, f"verify says {done.stdout[-2000:]} {done.stderr[-500:]}")


def _may_miss(consumer: Consumer, name: tuple[str, int], last: int, offset: int) -> bool:
    """Return whether the records between two offsets may be missing.

    Compaction may have removed them at any time, retention only during the read.
    """
    if name[0] == COMPACTED:
        return offset > last
    start: int = consumer.get_watermark_offsets(TopicPartition(*name), timeout=30)[0]
    return name[0] != KEPT and last < offset <= start


def read_numbers(consumer: Consumer, name: tuple[str, int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, number) of each record from *start* to at least *end*."""
    consumer.assign([TopicPartition(*name, start)])
    at = start

    def consume() -> list[Any]:
        return list(consumer.consume(500, 0.1))

    while at < end:
        messages = until(consume, every_seconds=0)
        if any(message.error() for message in messages) and not any(not message.error() for message in messages):
            return
        for message in messages:
            if not message.error():
                at = message.offset() + 1
                yield message.offset(), int(message.value().split(b" ", 1)[0])
    consumer.unassign()
