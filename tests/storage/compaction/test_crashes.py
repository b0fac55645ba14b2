"""A kill or a power failure at any operation of a compaction: the log reads as before or after the swap of a segment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.storage.compaction import CleanedSegment
from kafkacompat.storage.log.compaction import LogCompaction
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.segment import Segment
from kafkacompat.storage.segment.transaction_index import AbortedTransaction
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import OneName
from tests.storage.compaction.support import (
    COMPACTED,
    Left,
    aborted_of,
    append_pairs,
    compact_log,
    end_transaction,
    list_batches,
)
from tests.storage.conftest import memory_store
from tests.storage.support import NOW_MS, Store, create_log, read_headers, read_log, reopen_log, roll_log

SEGMENT_BYTES = 300
"""A segment size at which the log's segments become three."""

RECOVERY_POINT = 16
"""Everything before it is on the disk."""

MAP_BYTES = 5 * 24
"""Memory for some of the keys: the log takes two compactions, and the second begins with swapped segments."""

TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "transactional": True}


def build_log() -> tuple[MemoryFiles, Store, Log]:
    """Create a log of eight segments, all on the disk."""
    store = memory_store()
    files = store.files
    assert isinstance(files, MemoryFiles)
    log = create_log(store, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    for number in range(6):
        append_pairs(log, ("a", str(number)), (f"k{number}", "x" * 20), now_ms=NOW_MS + number)
        if number == 1:
            append_pairs(log, ("b", "aborted"), base_sequence=0, **TRANSACTION)
        if number == 3:
            end_transaction(log, 7, commit=False)
        if number == 4:
            append_pairs(log, ("k1", None))
        roll_log(log)
        if number == 4:
            # Too large to be grouped; only its offset will remain.
            append_pairs(log, ("a", "x" * (SEGMENT_BYTES - 100)))
            roll_log(log)
    log.flush()
    append_pairs(log, ("a", "last"))
    log.flush()
    files.sync_directory(log.directory)
    return files, store, log


def compact_all(store: Store, log: Log) -> None:
    """Compact everything."""
    while compact_log(store, log, map_bytes=MAP_BYTES, load_factor=1.0):
        pass


def list_states() -> list[list[Left]]:
    """Return the contents of the log before its compaction and after each swap."""
    _, store, log = build_log()
    seen = [list_batches(log)]

    class WatchedCompaction(LogCompaction):
        """Records the contents of the log after each swap."""

        def swap_segments(self, cleaned: CleanedSegment, segment: Segment) -> list[Segment]:
            replaced = super().swap_segments(cleaned, segment)
            seen.append(list_batches(log))
            return replaced

    log.compaction = WatchedCompaction(log.state)
    compact_all(store, log)
    assert len(seen) == 7
    return seen


STATES = list_states()
KEPT_ABORT = AbortedTransaction(7, 4, 9, 10)


def list_crashes(
    files: MemoryFiles, action: Callable[[], object], crash: Callable[[], list[MemoryFiles]]
) -> list[MemoryFiles]:
    """Return the different states of the disk that crashes at each operation of `action` leave, in order."""
    states: dict[int, MemoryFiles] = {}
    files.before_change = lambda _: states.update({state.fingerprint(): state for state in crash()})
    action()
    files.before_change = lambda _: None
    return list(states.values())


def power_failures(files: MemoryFiles, directory: str) -> list[MemoryFiles]:
    """Return the disk after a power failure: with all, none, one, or all but one of the unsynced renames."""
    return [files.after(failure) for failure in OneName.list_failures(files.unsynced_names(directory))]


def check_reopened(files: MemoryFiles, recovery_point: int) -> int:
    """Open the log twice; return the index of its state."""
    store = Store(files, "/logs")
    contents = []
    for _ in range(2):
        again = reopen_log(store, recovery_point=recovery_point, segment_bytes=SEGMENT_BYTES, **COMPACTED)
        contents.append(list_batches(again))
        assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in store.files.list(again.directory))
        for batch in contents[-1]:
            assert read_headers(read_log(again, batch.header.base_offset, 1)) == [batch.header]
        if recovery_point:
            assert KEPT_ABORT in [transaction for aborted in aborted_of(store).values() for transaction in aborted]
        again.release()
    assert contents[0] == contents[1]
    assert contents[0] in STATES
    return STATES.index(contents[0])


@pytest.mark.parametrize("recovery_point", [0, RECOVERY_POINT])
def test_a_killed_process_leaves_the_log_as_before_or_after(recovery_point: int) -> None:
    files, store, log = build_log()
    crashed = list_crashes(files, lambda: compact_all(store, log), lambda: [files.killed()])
    seen = [check_reopened(disk, recovery_point) for disk in crashed]
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(STATES)))


@pytest.mark.parametrize("recovery_point", [0, RECOVERY_POINT])
def test_a_power_failure_leaves_the_log_as_before_or_after(recovery_point: int) -> None:
    """The disk may have any of the renames since the last sync of the folder."""
    files, store, log = build_log()
    crashed = list_crashes(files, lambda: compact_all(store, log), lambda: power_failures(files, log.directory))
    assert {check_reopened(disk, recovery_point) for disk in crashed} == set(range(len(STATES)))


def test_so_does_a_power_failure_while_a_start_finishes_it() -> None:
    files, store, log = build_log()
    for left_over in list_crashes(
        files, lambda: compact_all(store, log), lambda: list(map(files.after, OneName.list_failures(0)))
    ):
        for disk in crashed_in_the_start(left_over, log.directory):
            check_reopened(disk, RECOVERY_POINT)


def crashed_in_the_start(files: MemoryFiles, directory: str) -> list[MemoryFiles]:
    """Return the disks after power failures at each operation of a start, and in the next compaction's first file."""
    store = Store(files, "/logs")

    def start() -> None:
        reopen_log(store, recovery_point=RECOVERY_POINT, segment_bytes=SEGMENT_BYTES, **COMPACTED)
        files.open(f"{directory}/{0:020d}.log.cleaned", create=True).close()
        files.sync_directory(directory)

    return list_crashes(files, start, lambda: power_failures(files, directory))
