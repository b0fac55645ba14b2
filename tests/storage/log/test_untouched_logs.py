"""Counting the operations of starts and stops for idle logs: there may be ten thousand of them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from tests.fakes.memory_file import MemoryFile
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import Store, create_log, fill_log, reopen_log


@pytest.fixture
def files(memory: Store) -> MemoryFiles:
    assert isinstance(memory.files, MemoryFiles)
    return memory.files


def changes_at_stop(files: MemoryFiles, log: Log) -> Counter[str]:
    """The changes of a clean stop, by operation."""
    counted: Counter[str] = Counter()
    files.before_change = lambda operation: counted.update([operation])
    log.close()
    files.before_change = lambda operation: None
    return counted


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_stop_writes_nothing_of_a_log_that_did_not_change(memory: Store, files: MemoryFiles, count: int) -> None:
    log = create_log(memory)
    fill_log(log, count)
    log.close()
    for _ in range(2):
        again = reopen_log(memory, clean=True)
        # Each start has a new leader epoch.
        again.leader_epochs.assign(again.leader_epochs.latest + 1, again.log_end_offset)
        assert changes_at_stop(files, again) == {}


def test_a_stop_writes_changed_files(memory: Store, files: MemoryFiles) -> None:
    log = create_log(memory)
    fill_log(log, 100)
    log.close()
    again = reopen_log(memory, clean=True)
    fill_log(again, 1)
    assert changes_at_stop(files, again)
    once_more = reopen_log(memory, clean=True)
    assert once_more.log_end_offset == 101
    assert once_more.segments.active.max_timestamp == again.segments.active.max_timestamp


def opened_at_start(monkeypatch: pytest.MonkeyPatch, files: MemoryFiles, store: Store, **kw: Any) -> list[int]:
    """Return the segments whose log files a start opens."""
    opened: set[str] = set()
    begin = files.open

    def open_file(path: str, *, create: bool = False) -> MemoryFile:
        opened.add(os.path.basename(path))
        return begin(path, create=create)

    monkeypatch.setattr(files, "open", open_file)
    log = reopen_log(store, segment_bytes=200, **kw)
    monkeypatch.setattr(files, "open", begin)
    assert len(log.segments) == 20
    return sorted(int(name.removesuffix(".log")) for name in opened if name.endswith(".log"))


def test_a_start_reads_no_segment_that_is_known_to_be_on_the_disk(
    monkeypatch: pytest.MonkeyPatch, memory: Store, files: MemoryFiles
) -> None:
    log = create_log(memory, segment_bytes=200)
    fill_log(log, 40)
    assert len(log.segments) == 20
    log.close()
    assert opened_at_start(monkeypatch, files, memory, clean=True, recovery_point=40) == [38]
    # As after a kill: flushed batches are not read again.
    assert opened_at_start(monkeypatch, files, memory, recovery_point=35) == [34, 36, 38]
