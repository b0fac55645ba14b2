"""A log under random use, compared with a list.

Each case is one seed; its number is in the test's id, and `STORAGE_SEEDS=7,8 pytest …` runs those seeds. After every
step, reads have to match the list. After a power failure the log may have lost batches, but no flushed ones, and it
never has other contents.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.wire.record_batch import BatchHeader
from tests.fakes.memory_files import MemoryFiles
from tests.storage.conftest import memory_store
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    make_batch,
    read_headers,
    read_log,
    reopen_log,
    roll_log,
    stored_headers,
)

SEEDS = [int(seed) for seed in os.environ.get("STORAGE_SEEDS", "").split(",") if seed] or range(60)
STEPS = 120


@dataclass(frozen=True)
class Stored:
    """An acknowledged batch."""

    base_offset: int
    count: int
    timestamp: int
    leader_epoch: int
    producer_id: int
    sequence: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.count - 1

    def header_fields(self) -> tuple[int, ...]:
        """The fields of its header in the log."""
        fields = (self.base_offset, self.last_offset, self.leader_epoch, self.timestamp + self.count - 1)
        return (*fields, self.producer_id, self.sequence)


def pick_fields(header: BatchHeader) -> tuple[int, ...]:
    fields = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.max_timestamp)
    return (*fields, header.producer_id, header.base_sequence)


@dataclass
class Model:
    """The expected log: every batch that was not truncated, including those that retention removed."""

    history: list[Stored] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def visible(self) -> list[Stored]:
        return [batch for batch in self.history if batch.last_offset >= self.start]

    def truncate(self, offset: int) -> None:
        self.history = [batch for batch in self.history if batch.last_offset < offset]
        self.end = max(self.history[-1].last_offset + 1 if self.history else 0, min(offset, self.start))
        self.start = min(self.start, self.end)

    def last_of(self, producer_id: int) -> Stored | None:
        return next((batch for batch in reversed(self.history) if batch.producer_id == producer_id), None)


class Run:
    """One random life of a log."""

    def __init__(self, store: Store, seed: int) -> None:
        self.random = Random(seed)
        self.store = store
        self.config: dict[str, Any] = {
            "segment_bytes": self.random.choice([600, 1500, 10_000]),
            "index_interval_bytes": self.random.choice([0, 200, 4096]),
            "segment_index_bytes": self.random.choice([60, 10_000]),
            "retention_ms": -1,
        }
        self.log: Log = create_log(store, **self.config)
        self.log.maintenance.make_durable()
        self.model = Model()
        self.leader_epoch = 0
        self.checkpointed = 0
        steps: dict[Callable[[], None], int] = {
            self.append: 60,
            self.append_again: 5,
            self.read: 20,
            self.find_time: 5,
            self.roll: 4,
            self.flush: 4,
            self.new_leader: 3,
            self.truncate: 2,
            self.advance_start: 2,
            self.retain: 3,
            self.reopen_clean: 2,
            self.kill: 2,
            self.power_failure: 3,
        }
        self.steps = self.random.choices(list(steps), list(steps.values()), k=STEPS)

    def go(self) -> None:
        for number, step in enumerate(self.steps):
            step()
            self.check(f"after step {number}: {step.__name__}")
        self.log.close()

    def check(self, when: str) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.model.start, self.model.end), when
        fields = [pick_fields(header) for header in stored_headers(self.log)]
        assert fields == [batch.header_fields() for batch in self.model.visible()], when
        epochs = {batch.leader_epoch for batch in self.model.visible()}
        assert epochs <= {entry.epoch for entry in self.log.leader_epochs.entries}, when

    # --- steps ---

    def _batch(self, stored: Stored) -> bytes:
        idempotent: dict[str, Any] = (
            {"producer_epoch": 0, "base_sequence": stored.sequence} if stored.producer_id >= 0 else {}
        )
        return make_batch(
            stored.count,
            size_bytes=stored.base_offset * 7919 % 90,
            timestamp=stored.timestamp,
            producer_id=stored.producer_id,
            **idempotent,
        )

    def append(self) -> None:
        producer_id = self.random.choice([-1, 1, 2])
        last = self.model.last_of(producer_id)
        sequence = last.sequence + last.count if last else 0
        stored = Stored(
            self.model.end,
            self.random.randint(1, 4),
            NOW_MS + self.random.randint(-500, 500),
            self.leader_epoch,
            producer_id,
            sequence if producer_id >= 0 else -1,
        )
        result = append_batch(self.log, self._batch(stored), leader_epoch=self.leader_epoch)
        assert (result.base_offset, result.last_offset, result.duplicate) == (
            stored.base_offset,
            stored.last_offset,
            False,
        )
        self.model.history.append(stored)
        self.model.end = stored.last_offset + 1

    def append_again(self) -> None:
        last = self.model.last_of(self.random.choice([1, 2]))
        if last is not None:
            result = append_batch(self.log, self._batch(last), leader_epoch=self.leader_epoch)
            assert (result.base_offset, result.last_offset, result.duplicate) == (
                last.base_offset,
                last.last_offset,
                True,
            )

    def read(self) -> None:
        offset = self.random.randint(self.model.start, self.model.end)
        limit = self.random.choice([1, 100, 1000, 10**6])
        data = read_log(self.log, offset, limit)
        following = [batch for batch in self.model.history if batch.last_offset >= offset]
        assert bool(data) == bool(following)
        headers = read_headers(data)
        assert [pick_fields(header) for header in headers] == [
            batch.header_fields() for batch in following[: len(headers)]
        ]
        assert len(headers) >= min(1, len(following))
        assert len(data) <= max(limit, headers[0].size_bytes if headers else 0)

    def find_time(self) -> None:
        timestamp = NOW_MS + self.random.randint(-600, 600)
        records = [
            (batch.base_offset + index, batch.timestamp + index)
            for batch in self.model.visible()
            for index in range(batch.count)
            if batch.base_offset + index >= self.model.start
        ]
        expected = next((record for record in records if record[1] >= timestamp), None)
        first_record = self.log.reader.offset_for_timestamp(timestamp)
        if expected is None:
            assert first_record is None
        elif first_record is None or (first_record.offset, first_record.timestamp) != expected:
            # The first segment with the timestamp may have it only before the log start offset; Kafka stops there too.
            assert self.model.start > self.log.segments[0].base_offset

    def roll(self) -> None:
        if self.log.segments.active.size_bytes:
            roll_log(self.log)

    def flush(self) -> None:
        assert self.log.flush() == self.model.end
        self.checkpointed = self.log.recovery_point

    def new_leader(self) -> None:
        self.leader_epoch += 1

    def truncate(self) -> None:
        offset = self.random.randint(self.model.start, self.model.end)
        self.log.trimmer.truncate_to(offset)
        self.model.truncate(offset)
        self.checkpointed = min(self.checkpointed, self.log.recovery_point)

    def advance_start(self) -> None:
        offset = self.random.randint(self.model.start, self.model.end)
        self.log.trimmer.advance_log_start_offset(offset)
        self.model.start = offset

    def retain(self) -> None:
        limits: dict[str, Any] = {"retention_bytes": self.random.randint(0, self.log.size_bytes)}
        self.log.config = change_config(self.log, **limits)
        expired = self.log.trimmer.expired_segments(high_watermark=self.model.end, now_ms=NOW_MS)
        if self.log.segments.active in expired:
            roll_log(self.log)
        self.log.trimmer.detach(expired)
        self.log.trimmer.mark_deleted(expired)
        if self.random.random() < 0.5:
            self.log.trimmer.delete_segments(expired)
        self.model.start = max(self.model.start, self.log.segments[0].base_offset)

    def reopen_clean(self) -> None:
        self.log.close()
        self.checkpointed = self.model.end
        self._reopen(clean=True)

    def kill(self) -> None:
        """Kill the process: all writes survive, but perhaps the last."""
        files = self.store.files
        if isinstance(files, MemoryFiles):
            tear = self.random.choice([None, self.random.randint(0, 200)])
            files.crash(lose_unsynced=False, tear_last_write=tear)
        else:
            tear = None
            self.log.release()
        self._reopen(clean=False)
        assert self.log.log_end_offset == self.model.end or tear is not None
        self._lose_tail(max_batches=1)

    def power_failure(self) -> None:
        files = self.store.files
        if isinstance(files, MemoryFiles):
            tear = self.random.choice([None, self.random.randint(0, 200)])
            durable = self.log.recovery_point
            files.crash(lose_unsynced=True, tear_last_write=tear)
            self._reopen(clean=False)
            assert self.log.log_end_offset >= durable
            self._lose_tail(max_batches=len(self.model.history))

    def _reopen(self, clean: bool) -> None:
        self.log = reopen_log(
            self.store, clean=clean, recovery_point=self.checkpointed, log_start_offset=self.model.start, **self.config
        )

    def _lose_tail(self, max_batches: int) -> None:
        end = self.log.log_end_offset
        lost = [batch for batch in self.model.history if batch.last_offset >= end]
        assert len(lost) <= max_batches
        if end == self.model.start and not self.log.producer_state.producers:
            # The log ended before its start offset, so it began empty, without producers.
            self.model.history.clear()
        else:
            assert not any(batch.base_offset < end for batch in lost)
            self.model.history = [batch for batch in self.model.history if batch.last_offset < end]
        self.model.end = end


def change_config(log: Log, **changes: Any) -> Any:
    """The log's configuration with changes."""
    from dataclasses import replace

    return replace(log.config, **changes)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_life(seed: int) -> None:
    Run(memory_store(), seed).go()


@pytest.mark.parametrize("seed", [1001, 1002, 1003])
def test_a_random_life_on_a_real_disk(store: Store, seed: int) -> None:
    Run(store, seed).go()
