"""Missing and damaged indexes are rebuilt with their previous contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkacompat.storage.segment.indexes import OffsetIndex
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    fill_log,
    list_offsets,
    make_batch,
    name_file,
    read_contents,
    reopen_log,
    rewrite_file,
)

PRODUCED: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}


def test_rebuilt_indexes_equal_those_written_while_appending(store: Store) -> None:
    log = create_log(store, segment_bytes=5000, index_interval_bytes=300)
    for index in range(100):
        append_batch(log, make_batch(1 + index % 4, size_bytes=index, timestamp=NOW_MS + index * 7919 % 500))
    log.close()
    written = read_contents(store)
    recovered = reopen_log(store, segment_bytes=5000, index_interval_bytes=300)
    recovered.close()
    assert read_contents(store) == written
    for index_name in [name for name in written if name.endswith("index")]:
        store.files.remove(store.path("t-0", index_name))
    reopen_log(store, clean=True, segment_bytes=5000, index_interval_bytes=300).close()
    assert read_contents(store) == written


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + bytes(24), lambda data: b"\xff" * 24])
def test_a_damaged_index_does_not_mislead(store: Store, suffix: str, damage: Callable[[bytes], bytes]) -> None:
    log = create_log(store, segment_bytes=3000, index_interval_bytes=0)
    fill_log(log, 100)
    log.close()
    rewrite_file(store, name_file(0, suffix), damage)
    again = reopen_log(store, clean=True, segment_bytes=3000, index_interval_bytes=0)
    assert list_offsets(again) == list(range(100))
    assert again.reader.offset_for_timestamp(NOW_MS + 17) == (17, NOW_MS + 17, 0)
    again.close()


def test_lost_indexes_of_a_sealed_segment_are_rebuilt(store: Store) -> None:
    log = create_log(store, index_interval_bytes=0)
    fill_log(log, 10)
    log.maintenance.roll(log.maintenance.prepare_segment(10))
    fill_log(log, 1)
    log.segments[0].sync()
    log.release()
    again = reopen_log(store, recovery_point=10, index_interval_bytes=0)
    assert again.segments[0].max_timestamp == NOW_MS + 9
    assert len(again.segments[0].indexes()[0]) == 9
    again.close()


def test_an_unsealed_segment_does_not_use_indexes_of_an_earlier_process(
    memory: Store,
) -> None:
    """Everything was flushed up to the new segment, so the recovery point does not show whether the old one was sealed."""
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory, index_interval_bytes=0)
    fill_log(log, 5)
    log.close()
    log = reopen_log(memory, clean=True, index_interval_bytes=0)
    for index in range(5, 10):
        append_batch(log, make_batch(timestamp=NOW_MS + index))
    assert log.flush() == 10
    log.maintenance.roll(log.maintenance.prepare_segment(10))
    memory.files.crash(lose_unsynced=False)
    again = reopen_log(memory, recovery_point=10, index_interval_bytes=0)
    assert again.reader.offset_for_timestamp(NOW_MS + 7) == (7, NOW_MS + 7, 0)
    assert again.segments[0].max_timestamp == NOW_MS + 9
    again.close()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("size", [16, 24])
def test_indexes_with_zeros_inside_are_built_again(memory: Store, suffix: str, size: int) -> None:
    """A power failure interrupted their writing."""
    log = create_log(memory, index_interval_bytes=0)
    fill_log(log, 10)
    log.flush()
    log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(10)))
    log.release()
    whole = memory.files.read(memory.path(name_file(0, suffix)))
    rewrite_file(memory, name_file(0, suffix), lambda data: data[:size] + bytes(size) + data[2 * size :])
    again = reopen_log(memory, recovery_point=10, index_interval_bytes=0)
    assert memory.files.read(memory.path(name_file(0, suffix))) == whole
    again.close()


def test_a_time_index_with_half_an_entry_is_rebuilt(memory: Store) -> None:
    """The entry crosses a page of the file, and the second page never reached the disk."""
    log = create_log(memory)
    append_batch(log, make_batch(3))
    log.flush()
    log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(3)))
    log.release()
    whole = memory.files.read(memory.path(name_file(0, ".timeindex")))
    rewrite_file(memory, name_file(0, ".timeindex"), lambda data: data[:8] + bytes(4))
    again = reopen_log(memory, recovery_point=3)
    assert memory.files.read(memory.path(name_file(0, ".timeindex"))) == whole
    again.close()


def test_indexes_that_lead_into_the_middle_of_a_batch_are_built_again(memory: Store) -> None:
    """Their batches were cut off, and others replaced them."""
    log = create_log(memory, index_interval_bytes=0)
    fill_log(log, 10)
    log.flush()
    log.maintenance.seal(log.maintenance.roll(log.maintenance.prepare_segment(10)))
    log.release()
    whole = memory.files.read(memory.path(name_file(0, ".index")))
    rewrite_file(
        memory, name_file(0, ".index"), lambda data: data[:8] + (2).to_bytes(4, "big") + (107).to_bytes(4, "big")
    )
    again = reopen_log(memory, recovery_point=10, index_interval_bytes=0)
    assert memory.files.read(memory.path(name_file(0, ".index"))) == whole
    again.close()


def test_a_damaged_index_is_rebuilt_in_memory_when_first_needed(memory: Store) -> None:
    assert isinstance(memory.files, MemoryFiles)
    log = create_log(memory, segment_bytes=20_000, index_interval_bytes=4096)
    fill_log(log, 300, size_bytes=50)
    log.close()
    expected = OffsetIndex.decode(0, memory.files.read(memory.path(name_file(0, ".index"))), 20_000)
    rewrite_file(memory, name_file(0, ".index"), lambda _: b"\xff" * 24)
    again = reopen_log(memory, clean=True, segment_bytes=20_000)
    index = again.segments[0].indexes()[0]
    assert len(index) == len(expected) > 3
    assert (index.relative_offsets, index.positions) == (expected.relative_offsets, expected.positions)
    again.close()
    assert memory.files.open_handles == 0
