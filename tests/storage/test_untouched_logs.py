"""What starts and stops cost for logs that nobody writes to, by counting: there may be ten thousand of them."""

from __future__ import annotations

from collections import Counter

import pytest

from kafkacompat.storage.log import Log
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import Store, create, fill, reopen


@pytest.fixture
def files(memory: Store) -> MemoryFiles:
    assert isinstance(memory.files, MemoryFiles)
    return memory.files


def changes_at_stop(files: MemoryFiles, log: Log) -> Counter[str]:
    """What a clean stop changes, by operation."""
    counted: Counter[str] = Counter()
    files.before_change = lambda operation: counted.update([operation])
    log.close()
    files.before_change = lambda operation: None
    return counted


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_stop_writes_nothing_of_a_log_that_did_not_change(memory: Store, files: MemoryFiles, count: int) -> None:
    log = create(memory)
    fill(log, count)
    log.close()
    for _ in range(2):
        again = reopen(memory, clean=True)
        # Each start leads under a new epoch.
        again.leader_epochs.assign(again.leader_epochs.latest + 1, again.log_end_offset)
        assert changes_at_stop(files, again) == {}


def test_a_stop_writes_what_did_change(memory: Store, files: MemoryFiles) -> None:
    log = create(memory)
    fill(log, 100)
    log.close()
    again = reopen(memory, clean=True)
    fill(again, 1)
    assert changes_at_stop(files, again)
    once_more = reopen(memory, clean=True)
    assert once_more.log_end_offset == 101
    assert once_more.segments.active.max_timestamp == again.segments.active.max_timestamp
