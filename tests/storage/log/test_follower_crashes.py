"""Power failures of a follower: a part of the leader's log is left, and fetching again completes it.

One seed is one life of a follower, whose leader changes at times. The power fails at random operations of the file system:
the next process starts on the files that are left, follows the leader, and its power fails again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.inspection.directory_check import check_target, find_check_target
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import CONTENTS, NAMES, Survivors
from tests.storage.compaction.support import COMPACTED, append_pairs, roll_and_compact
from tests.storage.conftest import memory_store
from tests.storage.log.followers import (
    IDEMPOTENT,
    PLAIN,
    TRANSACTIONAL,
    End,
    Leader,
    Write,
    append_fetched,
    copy_all,
    fetch_as_follower,
    list_aborted,
    stored_bytes,
)
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    create_log,
    fill_log,
    list_offsets,
    read_headers,
    reopen_log,
    take_directory,
)

SEEDS = [int(seed) for seed in os.environ.get("STORAGE_SEEDS", "").split(",") if seed] or range(12)
STEPS = 60
FAILURE_CHANCE = 0.06
CONFIG: dict[str, Any] = {"segment_bytes": 900, "index_interval_bytes": 100}


def open_follower(store: Store) -> tuple[LogDirectory, Log]:
    """Take the follower's log directory, and open its log."""
    directory = take_directory(store)
    return directory, directory.open_log("t", 0, TOPIC_ID, LogConfig(**CONFIG), NOW_MS, is_replicated=True)


def find_divergence(log: Log, leader: Log) -> int:
    """Return the offset up to which the logs agree, as followers find it by leader epochs (KIP-279)."""
    epoch = log.leader_epochs.latest
    end_offset = log.log_end_offset
    while epoch >= 0:
        known, leaders_end = leader.reader.offset_for_leader_epoch(epoch)
        own, own_end = log.reader.offset_for_leader_epoch(known)
        end_offset = min(end_offset, leaders_end, own_end)
        if known == epoch or own == known or own < 0:
            break
        epoch = own
    return end_offset


class Life:
    """A follower, its leader, and the power failures of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.failures = 0
        self.leader = Leader(CONFIG)
        self.leaders = [self.leader]
        self.committed = 0
        """The leader's high watermark: every later leader has the records before it."""
        self.synced = 0
        """Everything before this offset is on the follower's disk."""
        self.is_examined = False
        self.store = memory_store()
        self.directory, self.log = open_follower(self.store)
        files = self.store.files
        assert isinstance(files, MemoryFiles)
        self.files = files
        files.before_change = self._before_change
        steps: dict[Callable[[], None], int] = {
            self.produce: 20,
            self.fetch: 30,
            self.commit: 10,
            self.flush: 5,
            self.checkpoint: 5,
            self.change_leader: 3,
            self.delete_records: 2,
            self.start_over: 1,
        }
        self.steps = self.random.choices(list(steps), list(steps.values()), k=STEPS)

    def live(self) -> None:
        for step in self.steps:
            step()
        self.files.before_change = lambda _: None
        assert self.failures

    # --- steps ---

    def produce(self) -> None:
        history: list[Any] = [
            Write(
                self.random.choice(PLAIN + IDEMPOTENT + TRANSACTIONAL),
                self.random.randint(1, 3),
                self.random.randint(0, 90),
                self.random.randint(-500, 500),
                0,
            )
            for _ in range(self.random.randint(1, 5))
        ]
        if self.random.random() < 0.5:
            history.append(End(self.random.choice(TRANSACTIONAL), self.random.random() < 0.5))
        self.leader.live(history)

    def fetch(self) -> None:
        log, leader = self.log, self.leader.log
        if log.log_end_offset < leader.log_start_offset:
            self._start_over_at(leader.log_start_offset)
        if log.log_end_offset < leader.log_end_offset:
            append_fetched(log, fetch_as_follower(leader, log.log_end_offset, self.random.choice([1, 500, 5000])))

    def commit(self) -> None:
        self.committed = max(self.committed, self.random.randint(0, self.log.log_end_offset))

    def flush(self) -> None:
        self.synced = max(self.synced, self.log.flush())

    def checkpoint(self) -> None:
        self.directory.checkpoint([self.log], {("t", 0): min(self.committed, self.log.log_end_offset)})

    def change_leader(self) -> None:
        """Let another replica lead, which has the committed batches and perhaps more; the follower truncates."""
        old = self.leader.log
        fork = self.random.randint(max(self.committed, old.log_start_offset), old.log_end_offset)
        following = Leader(CONFIG)
        append_fetched(following.log, stored_bytes(old))
        following.log.trimmer.truncate_to(fork)
        if following.log.log_end_offset < self.committed:
            return  # the fork lay inside a batch
        following.log.trimmer.advance_log_start_offset(old.log_start_offset)
        following.epoch = self.leader.epoch + 1
        following._sequences = dict(self.leader._sequences)
        self.leader = following
        self.leaders.append(following)
        self.produce()
        self._truncate()

    def _truncate(self) -> None:
        while (offset := find_divergence(self.log, self.leader.log)) < self.log.log_end_offset:
            self.synced = min(self.synced, self._cut_at(offset))
            self.log.trimmer.truncate_to(offset, high_watermark=self.committed)
            self._save()

    def _cut_at(self, offset: int) -> int:
        """Return the beginning of the batch that holds an offset."""
        return min(
            [
                offset,
                *(
                    header.base_offset
                    for header in read_headers(stored_bytes(self.log))
                    if header.last_offset >= offset
                ),
            ]
        )

    def _save(self) -> None:
        self.directory.save_truncation(self.log, min(self.committed, self.log.log_end_offset))

    def delete_records(self) -> None:
        start = self.random.randint(0, self.committed)
        boundaries = [
            header.base_offset for header in read_headers(stored_bytes(self.leader.log)) if header.base_offset <= start
        ]
        if boundaries and boundaries[-1] <= self.log.log_end_offset:
            self.leader.log.trimmer.advance_log_start_offset(boundaries[-1])
            self.log.trimmer.advance_log_start_offset(boundaries[-1])

    def start_over(self) -> None:
        """The leader's log begins after the follower's end."""
        self.leader.live([Write(-1, 2, 30, 0, 0)])
        self.committed = end = self.leader.log.log_end_offset
        if self.log.log_end_offset < end:
            self.leader.log.trimmer.advance_log_start_offset(end)
            self._start_over_at(end)

    def _start_over_at(self, offset: int) -> None:
        self.synced = 0
        self.log.trimmer.start_over_at(offset)
        self._save()

    # --- power failures ---

    def _before_change(self, _operation: str) -> None:
        if self.is_examined or self.random.random() >= FAILURE_CHANCE:
            return
        self.is_examined = True
        self.failures += 1
        try:
            survivors = Survivors(self.random.choice(list(NAMES)), self.random.choice(list(CONTENTS)), self.random)
            self.examine(self.files.after(survivors))
        finally:
            self.is_examined = False

    def examine(self, files: MemoryFiles) -> None:
        """Start on the files that are left, follow, and fail again."""
        store = Store(files, self.store.root)
        directory, log = open_follower(store)
        self._check(directory, log)
        assert log.log_end_offset >= self.synced
        self._follow_all(directory, log)
        survivors = Survivors(self.random.choice(list(NAMES)), self.random.choice(list(CONTENTS)), self.random)
        directory, log = open_follower(Store(files.after(survivors), store.root))
        self._check(directory, log)
        self._follow_all(directory, log)
        expected = list_aborted(log), stored_bytes(log)
        directory.close([log], {("t", 0): self.committed})
        expect_sound(store, log)
        directory, log = open_follower(Store(log.state.files, store.root))
        assert (list_aborted(log), stored_bytes(log)) == expected
        assert directory.clean_shutdown

    def _check(self, directory: LogDirectory, log: Log) -> None:
        """The log holds batches of one of the leaders, up to a high watermark that is not above the committed offset."""
        high_watermark = directory.find_high_watermark(log).offset
        assert high_watermark <= log.log_end_offset
        assert high_watermark <= max(self.committed, log.log_start_offset)
        known = {data for leader in self.leaders for data in _split_batches(stored_bytes(leader.log))}
        assert all(data in known for data in _split_batches(stored_bytes(log)))
        assert not any(segment.corrupt for segment in log.segments)

    def _follow_all(self, directory: LogDirectory, log: Log) -> None:
        leader = self.leader.log
        while (offset := find_divergence(log, leader)) < log.log_end_offset:
            log.trimmer.truncate_to(offset)
            directory.save_truncation(log, 0)
        if not leader.log_start_offset <= log.log_end_offset <= leader.log_end_offset:
            log.trimmer.start_over_at(leader.log_start_offset)
            directory.save_truncation(log, 0)
        copy_all(leader, log, [700, 40])
        start = max(log.log_start_offset, leader.log_start_offset)
        ours, leaders = _list_batches_from(log, start), _list_batches_from(leader, start)
        assert ours == leaders
        known, expected = _list_ends(log), _list_ends(leader)
        # A transaction that began before this log did may begin later here.
        assert {end: first for end, first in expected.items() if first >= start}.items() <= known.items()
        assert all(expected[end] <= first for end, first in known.items() if end[1] >= start)


def expect_sound(store: Store, log: Log) -> None:
    """`kafkacompat log verify` has nothing to say of the closed directory."""
    findings: list[object] = []
    target = find_check_target(log.state.files, store.path("data"))
    check_target(log.state.files, target, findings.append, lambda _: None, findings.append)
    assert not findings


def _list_ends(log: Log) -> dict[tuple[int, int], int]:
    """Return the aborted transactions: (producer, offset of the marker) -> first offset."""
    return {(entry.producer_id, entry.last_offset): entry.first_offset for entry in list_aborted(log)}


def _split_batches(data: bytes) -> list[bytes]:
    batches, start = [], 0
    for header in read_headers(data):
        batches.append(data[start : start + header.size_bytes])
        start += header.size_bytes
    return batches


def _list_batches_from(log: Log, offset: int) -> list[bytes]:
    batches = zip(read_headers(stored_bytes(log)), _split_batches(stored_bytes(log)), strict=True)
    return [data for header, data in batches if header.last_offset >= offset]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_is_complete_again_after_every_power_failure(seed: int) -> None:
    Life(seed).live()


@pytest.mark.parametrize("offset", [3, 30, 300])
def test_a_log_that_starts_over_does_so_for_good(memory: Store, offset: int) -> None:
    """A crash at any of its operations leaves a part of the old log, or an empty one."""
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory, **CONFIG)
    fill_log(log, 40)
    log.flush()
    left: list[tuple[int, list[int]]] = []

    def fail(_: str) -> None:
        again = reopen_log(Store(files.after(Survivors("any", "none", Random(len(left)))), memory.root), **CONFIG)
        left.append((again.log_end_offset, list_offsets(again)))

    files.before_change = fail
    log.trimmer.start_over_at(offset)
    files.before_change = lambda _: None
    for end, offsets in left:
        assert offsets == list(range(len(offsets)))
        assert end == len(offsets) or (offsets, end) == ([], offset)
    files.crash()
    again = reopen_log(memory, recovery_point=40, **CONFIG)
    assert (again.log_start_offset, again.log_end_offset, list_offsets(again)) == (offset, offset, [])


def test_a_crash_before_the_checkpoints_of_a_truncation_is_made_up_for(memory: Store) -> None:
    """Otherwise the next process would append below the old recovery point, where recovery trusts what it finds."""
    directory, log = open_follower(memory)
    fill_log(log, 20)
    log.flush()
    directory.checkpoint([log], {("t", 0): 15})
    log.trimmer.truncate_to(7)
    assert isinstance(memory.files, MemoryFiles)
    memory.files.crash()
    directory, log = open_follower(memory)
    assert (log.log_end_offset, directory.find_high_watermark(log).offset) == (7, 7)
    memory.files.crash()
    checkpoints = take_directory(memory).checkpoints
    assert (checkpoints.recovery_points["t", 0], checkpoints.high_watermarks["t", 0]) == (7, 7)


def test_gaps_that_the_leader_compacted_are_no_damage(memory: Store) -> None:
    leader_store = memory_store()
    leader = create_log(leader_store, **COMPACTED)
    for number in range(20):
        append_pairs(leader, (str(number % 3), "value"))
    roll_and_compact(leader_store, leader)
    fill_log(leader, 2)
    directory, log = open_follower(memory)
    copy_all(leader, log, [300])
    assert [header.base_offset for header in read_headers(stored_bytes(log))] == [17, 18, 19, 20, 21]
    log.flush()
    directory.checkpoint([log])
    assert isinstance(memory.files, MemoryFiles)
    memory.files.crash()
    directory, log = open_follower(memory)
    assert stored_bytes(log) == stored_bytes(leader)
    directory.close([log])
    expect_sound(memory, log)
