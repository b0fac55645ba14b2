"""Opening a rotten log: damage that no crash explains is recorded, and only the damaged batch is lost."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.corruption import BadBatch, CorruptDataError
from tests.storage.support import (
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    name_file,
    read_headers,
    read_log,
    reopen_log,
    rewrite_file,
    roll_log,
)

SIZE = len(make_batch())
FIRST = 8
"""Batches of one record in the rolled segment, and again in the active one."""
END = 2 * FIRST
BYTES = [0, 7, 8, 9, 16, 26, 30, SIZE - 1]
CONFIG: dict[str, Any] = {"index_interval_bytes": 2 * SIZE}


def store_log(store: Store, *, clean: bool) -> None:
    log = create_log(store, **CONFIG)
    fill_log(log, FIRST)
    roll_log(log)
    fill_log(log, FIRST)
    if clean:
        log.close()
    else:
        log.flush()
        log.release()


def damage_log(store: Store, offset: int, byte: int) -> None:
    def flip(data: bytes) -> bytes:
        flipped = bytearray(data)
        flipped[offset % FIRST * SIZE + byte] ^= 0x40
        return bytes(flipped)

    rewrite_file(store, name_file(offset // FIRST * FIRST, ".log"), flip)


def everything_but(log: Log, bad: int) -> None:
    """Check that all sound batches are readable, and that the log continues at its end."""
    position = bad % FIRST * SIZE
    assert log.examiner.corrupt == {bad // FIRST * FIRST: (BadBatch(position, SIZE, bad, bad),)}
    assert (log.log_end_offset, log.state.truncated_bytes) == (END, 0)
    for offset in range(END):
        if offset != bad:
            assert read_headers(read_log(log, offset))[0].base_offset == offset
    with pytest.raises(CorruptDataError):
        read_log(log, bad)
    assert append_batch(log, make_batch()).base_offset == END


@pytest.mark.parametrize("byte", BYTES)
@pytest.mark.parametrize("bad", [0, 3, FIRST - 1])
@pytest.mark.parametrize("clean", [True, False])
def test_a_rolled_segment_whose_indexes_are_rebuilt(memory: Store, bad: int, byte: int, clean: bool) -> None:
    store_log(memory, clean=clean)
    damage_log(memory, bad, byte)
    memory.files.remove(memory.path(name_file(0, ".index")))
    everything_but(reopen_log(memory, clean=clean, recovery_point=END, **CONFIG), bad)


@pytest.mark.parametrize("byte", BYTES)
@pytest.mark.parametrize("bad", [FIRST, FIRST + 3, END - 2])
def test_the_last_segment_in_front_of_the_recovery_point(memory: Store, bad: int, byte: int) -> None:
    store_log(memory, clean=False)
    damage_log(memory, bad, byte)
    everything_but(reopen_log(memory, recovery_point=END, **CONFIG), bad)


@pytest.mark.parametrize("bad", [FIRST, END - 2])
def test_a_header_in_the_last_segment_after_a_clean_stop(memory: Store, bad: int) -> None:
    store_log(memory, clean=True)
    rewrite_file(memory, name_file(FIRST, ".index"), lambda _: b"")
    damage_log(memory, bad, 8)
    everything_but(reopen_log(memory, clean=True, **CONFIG), bad)


@pytest.mark.parametrize("byte", [byte for byte in BYTES if byte != 7])
def test_after_the_recovery_point_the_log_ends_before_damage(memory: Store, byte: int) -> None:
    store_log(memory, clean=False)
    damage_log(memory, FIRST + 3, byte)
    log = reopen_log(memory, recovery_point=FIRST + 2, **CONFIG)
    assert (log.log_end_offset, log.examiner.corrupt) == (FIRST + 3, {})


def test_damage_at_the_very_end_is_cut_off(memory: Store) -> None:
    """Nothing sound follows, so the extent of the damage is unknown."""
    store_log(memory, clean=False)
    damage_log(memory, END - 1, 40)
    log = reopen_log(memory, recovery_point=END, **CONFIG)
    assert (log.log_end_offset, log.state.truncated_bytes, log.examiner.corrupt) == (END - 1, SIZE, {})
