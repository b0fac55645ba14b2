"""Random lives of partitions whose appends wait for the disk, with crashes and failures in between.

Whatever was acknowledged is there after a power failure, nothing is seen before it is on the disk, and everybody who waits
is answered exactly once. Each case is one seed; `STORAGE_SEEDS=7,8 pytest …` runs those.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from random import Random

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.log.log import AppendResult
from kafkacompat.storage.log_config import LONG_MAX, LogConfig
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.record_batch import build_batch, read_records
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import Node, topic

SEEDS = [int(seed) for seed in os.environ.get("STORAGE_SEEDS", "").split(",") if seed] or range(60)
STEPS = 150
PARTITIONS = 3


def contents(partition: Partition) -> dict[int, bytes]:
    """Offset -> value of every record that consumers can read."""
    values: dict[int, bytes] = {}
    offset = partition.log.log_start_offset
    while (region := partition.log.read(offset, 1, partition.high_watermark)) is not None:
        for record in read_records(region.pread(0, region.size_bytes)):
            values[record.offset] = bytes(record.value or b"")
            offset = record.offset + 1
        region.release()
    return values


class Run:
    """One random life."""

    def __init__(self, seed: int, always: bool) -> None:
        self.random = Random(seed)
        self.always = always
        config = LogConfig(
            segment_bytes=self.random.choice([300, 900, 1 << 20]),
            index_interval_bytes=100,
            flush_messages=LONG_MAX if always else 1,
        )
        self.image = topic("t", PARTITIONS)
        self.node = Node(config=config, syncs_always=always)
        self.node.open(self.image)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.numbers = count()
        self.answers: dict[int, int] = {}
        self.asked: list[int] = []
        steps: dict[Callable[[], None], int] = {
            self.append: 60,
            self.work_once: 50,
            self.turn: 30,
            self.work: 5,
            self.flush: 3,
            self.roll: 3,
            self.fail: 1,
            self.kill: 1,
            self.power_failure: 2,
            self.stop: 1,
        }
        self.steps = self.random.choices(list(steps), list(steps.values()), k=STEPS)

    def go(self) -> None:
        for step in self.steps:
            step()
            for partition in self.node.replicas if self.always else ():
                # What consumers see would survive a power failure in this instant.
                assert partition.high_watermark.offset <= partition.log.recovery_point
        self.settle()
        assert self.answers == dict.fromkeys(self.asked, 1)
        self.power_failure()
        before = len(self.acknowledged)
        self.append()
        self.settle()
        assert len(self.acknowledged) == before + 1
        self.power_failure()

    def settle(self) -> None:
        """As a broker that stops."""
        settled = Deferred.fromCoroutine(self.node.replicas.prepare_to_close())
        while not settled.called:
            self.node.sync()
        outcome(settled)

    # --- steps ---

    def append(self) -> None:
        number = next(self.numbers)
        try:
            partition = self.node.replicas.find("t", self.random.randrange(PARTITIONS))
            value = b"%d" % number * self.random.randint(1, 20)
            appended = partition.append(build_batch([(self.node.now_ms, b"k", value, ())]), self.node.now_ms)
        except KafkaError:
            return
        assert isinstance(appended, Deferred)
        self.asked.append(number)
        index = partition.index

        def answered(result: AppendResult | Failure) -> None:
            self.answers[number] = self.answers.get(number, 0) + 1
            if isinstance(result, AppendResult):
                self.acknowledged[index, result.base_offset] = value
            else:
                assert result.check(KafkaError)

        appended.addBoth(answered)

    def turn(self) -> None:
        self.node.clock.advance(0)

    def work_once(self) -> None:
        if self.node.disks[0].waiting:
            self.node.disks[0].waiting.popleft()()

    def work(self) -> None:
        self.node.work()

    def flush(self) -> None:
        for partition in self.node.replicas:
            partition.flush().addErrback(lambda _: None)

    def roll(self) -> None:
        for partition in self.node.replicas:
            if partition.log.segments.active.size_bytes:
                partition.roll()

    def fail(self) -> None:
        operation = self.random.choice(["sync", "sync_directory", "append", "truncate", "open"])
        code = self.random.choice([errno.EIO, errno.ENOSPC])
        self.node.files.fail_on(operation, code, after_bytes=self.random.randrange(100))

    def kill(self) -> None:
        self._crash(lose_unsynced=False)

    def power_failure(self) -> None:
        self._crash(lose_unsynced=True)

    def _crash(self, *, lose_unsynced: bool) -> None:
        # Whoever waited will never hear of it.
        self.asked = [number for number in self.asked if number in self.answers]
        tear = self.random.choice([None, 10, 1000]) if lose_unsynced else None
        self.node.files.crash(lose_unsynced=lose_unsynced, tear_last_write=tear)
        self._start()

    def stop(self) -> None:
        self.settle()
        for directory, logs in self.node.replicas.logs_by_directory():
            with suppress(KafkaError, OSError):
                directory.storage.close(logs)
        self.node.files.crash(lose_unsynced=False)
        self._start()

    def _start(self) -> None:
        self.node = self.node.next_process()
        self.node.open(self.image)
        values = {
            (partition.index, offset): value
            for partition in self.node.replicas
            for offset, value in contents(partition).items()
        }
        assert self.acknowledged.items() <= values.items()


@pytest.mark.parametrize("always", [True, False], ids=["fsync", "flush.messages=1"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost(seed: int, always: bool) -> None:
    Run(seed, always).go()
