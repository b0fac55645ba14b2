"""The process or the power ends at any operation of a compaction: the log reads as before or as after a segment's replacing."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.storage.log import Log
from kafkacompat.storage.transaction_index import AbortedTransaction
from tests.storage.compaction.crashing import CrashingFiles, PowerFailureError
from tests.storage.compaction.support import (
    COMPACTED,
    Left,
    aborted_of,
    compact_log,
    end_transaction,
    index_aborted,
    left,
    put,
)
from tests.storage.support import NOW_MS, Store, create, headers, read, reopen, roll

SEGMENT_BYTES = 300
"""Room for some of the log's segments: they become three."""

TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "transactional": True}


def build() -> tuple[CrashingFiles, Store, Log]:
    """A log of seven segments, all on the disk."""
    files = CrashingFiles()
    files.make_directory("/logs")
    files.sync_directory("/")
    store = Store(files, "/logs")
    log = create(store, segment_bytes=SEGMENT_BYTES, **COMPACTED)
    for number in range(6):
        put(log, ("a", str(number)), (f"k{number}", "x" * 20), now_ms=NOW_MS + number)
        if number == 1:
            put(log, ("b", "aborted"), base_sequence=0, **TRANSACTION)
        if number == 3:
            end_transaction(log, 7, commit=False)
        if number == 4:
            put(log, ("k1", None))
        roll(log)
    index_aborted(store, log)
    put(log, ("a", "last"))
    log.flush()
    files.sync_directory(log.directory)
    files.done = 0
    return files, store, log


def states() -> tuple[int, list[list[Left]]]:
    """How many operations a compaction is, and how the log reads before it and after each segment's replacing."""
    files, store, log = build()
    seen = [left(log)]
    swap = log.swap_segments

    def watched(*args: object) -> object:
        replaced = swap(*args)  # type: ignore[arg-type]
        seen.append(left(log))
        return replaced

    log.swap_segments = watched  # type: ignore[assignment, method-assign]
    compact_log(store, log)
    assert len(seen) == 4
    return files.done, seen


OPERATIONS, STATES = states()
KEPT_ABORT = AbortedTransaction(7, 4, 9, 10)


def interrupt(operation: int) -> tuple[CrashingFiles, Store, Log]:
    files, store, log = build()
    files.end_at = operation
    with pytest.raises(PowerFailureError):
        compact_log(store, log)
    return files, store, log


def check(store: Store, recovery_point: int) -> int:
    """Open the log twice; returns which state it is in."""
    found = []
    for _ in range(2):
        again = reopen(store, recovery_point=recovery_point, segment_bytes=SEGMENT_BYTES, **COMPACTED)
        found.append(left(again))
        assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in store.files.list(again.directory))
        for batch in found[-1]:
            assert headers(read(again, batch.header.base_offset, 1)) == [batch.header]
        if recovery_point:
            assert KEPT_ABORT in [each for aborted in aborted_of(store).values() for each in aborted]
        again.release()
    assert found[0] == found[1]
    assert found[0] in STATES
    return STATES.index(found[0])


@pytest.mark.parametrize("recovery_point", [0, 15])
def test_a_killed_process_leaves_the_log_as_before_or_after(recovery_point: int) -> None:
    seen = []
    for operation in range(OPERATIONS):
        files, store, _ = interrupt(operation)
        files.end_at = -1
        files.crash(lose_unsynced=False)
        seen.append(check(store, recovery_point))
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2, 3}


@pytest.mark.parametrize("recovery_point", [0, 15])
@pytest.mark.parametrize("seed", [None, *range(4)])
def test_a_power_failure_leaves_the_log_as_before_or_after(recovery_point: int, seed: int | None) -> None:
    """Names may have changed on the disk in any order since their folder was synced last."""
    for operation in range(OPERATIONS):
        files, store, log = interrupt(operation)
        files.end_with_power(log.directory, None if seed is None else Random(1000 * seed + operation))
        check(store, recovery_point)


@pytest.mark.parametrize("seed", [None, *range(2)])
def test_so_does_a_power_failure_while_a_start_finishes_it(seed: int | None) -> None:
    rng = None if seed is None else Random(seed)
    for operation in range(0, OPERATIONS, 3):
        for second in range(20):
            files, store, log = interrupt(operation)
            files.end_with_power(log.directory, rng)
            files.done, files.end_at = 0, second
            try:
                reopen(store, recovery_point=15, segment_bytes=SEGMENT_BYTES, **COMPACTED)
            except PowerFailureError:
                files.end_with_power(log.directory, rng)
                check(store, 15)
            else:
                files.end_at = -1
                break
