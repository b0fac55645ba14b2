"""A kill or a power failure at any operation of a repair: nothing is lost, and the next repair completes it."""

from __future__ import annotations

from contextlib import suppress

import pytest

from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.storage.segment.walk import LARGEST_OFFSET, Bounds, walk_log_file
from kafkacompat.wire.record_batch import crc_matches
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.power_failures import OneName
from tests.storage.conftest import memory_store
from tests.storage.inspection.support import FOLDER, list_problems, write_directory
from tests.storage.inspection.test_repair import (
    flip_byte,
    list_base_offsets,
    open_log,
    plan_steps,
    read_files,
    run_steps,
)
from tests.storage.support import Store, read_log, stored_headers


def build_directory() -> tuple[Store, MemoryFiles, set[bytes]]:
    """Write a directory with a damaged log; return the bytes of its sound batches."""
    store = memory_store()
    write_directory(store)
    flip_byte(store, f"{list_base_offsets(store)[1]:020d}.log", 80)
    flip_byte(store, f"{list_base_offsets(store)[0]:020d}.index", 3)
    assert isinstance(store.files, MemoryFiles)
    for name in store.files.list(store.path(FOLDER)):
        file = store.files.open(store.path(FOLDER, name))
        file.sync()
        file.close()
    for folder in (FOLDER, "data"):
        store.files.sync_directory(store.path(folder))
    return store, store.files, sound_batches(store)


def sound_batches(store: Store) -> set[bytes]:
    """Return the sound batches of the log and of its removed files."""
    batches = set()
    for name, data in read_files(store).items():
        if ".log" in name and not name.endswith(".tmp"):
            file = store.files.open(store.path(FOLDER, name))
            for stretch in walk_log_file(file, Bounds(len(data), LARGEST_OFFSET), 0):
                if not stretch.problem:
                    batches.add(data[stretch.position : stretch.end])
            file.close()
    return batches


def list_crashes(store: Store, left: MemoryFiles, *, is_power: bool) -> list[MemoryFiles]:
    if not is_power:
        return [left.killed()]
    unsynced = sum(left.unsynced_names(store.path(folder)) for folder in (FOLDER, "data"))
    return [left.after(failure) for failure in OneName.list_failures(unsynced)]


def list_states(is_power: bool) -> tuple[list[Store], set[bytes]]:
    """Return the different states of the disk that an interrupted repair leaves, and the sound batches before it."""
    store, left, written = build_directory()
    steps = plan_steps(store, truncate=True)
    states: dict[int, MemoryFiles] = {}
    left.before_change = lambda _: states.update(
        {state.fingerprint(): state for state in list_crashes(store, left, is_power=is_power)}
    )
    run_steps(steps)
    left.before_change = lambda _: None
    assert len(states) > 20
    return [Store(state, store.root) for state in states.values()], written


@pytest.mark.parametrize("is_power", [False, True])
def test_an_interrupted_repair_loses_nothing_and_the_next_one_completes_it(is_power: bool) -> None:
    stores, written = list_states(is_power)
    for store in stores:
        assert sound_batches(store) >= written
        run_steps(plan_steps(store, truncate=True))
        assert sound_batches(store) >= written
        assert list_problems(store) == []


@pytest.mark.parametrize("is_power", [False, True])
def test_a_broker_that_starts_then_has_the_beginning_of_the_log(is_power: bool) -> None:
    for store in list_states(is_power)[0]:
        log = open_log(store)
        for segment in log.segments:
            log.examiner.examine(segment)
        ends = [bad.first_offset for bads in log.examiner.corrupt.values() for bad in bads]
        offset = 0
        with suppress(CorruptDataError):
            for header in stored_headers(log):
                assert header.base_offset == offset and crc_matches(read_log(log, offset, 1), header)
                offset = header.last_offset + 1
        assert offset == min(ends, default=log.log_end_offset) > 0
