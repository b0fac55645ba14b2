"""Random damage: checks and repairs end, a repaired log is sound, and readers get the written batches or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import BatchHeader, crc_matches, read_header, split_batches
from tests.storage.conftest import memory_store
from tests.storage.inspection.support import FOLDER, list_problems, write_directory
from tests.storage.inspection.test_repair import open_log, plan_steps, run_steps
from tests.storage.support import Store, rewrite_file, stored_headers

CASES = 40
UNREPAIRED = ("no batch holds", "unlike its neighbours")
"""Faults that `repair` leaves: missing offsets, and leader epochs of batches."""


def flip(data: bytearray, at: int, _: Random) -> None:
    data[at] ^= 1 << at % 8


def zero(data: bytearray, at: int, random: Random) -> None:
    end = min(len(data), at + random.randrange(1, 200))
    data[at:end] = bytes(end - at)


def fill(data: bytearray, at: int, random: Random) -> None:
    end = min(len(data), at + random.randrange(1, 200))
    data[at:end] = random.randbytes(end - at)


def cut(data: bytearray, at: int, _: Random) -> None:
    del data[at:]


def repeat(data: bytearray, at: int, _: Random) -> None:
    data[at:at] = data[max(0, at - 100) : at]


KINDS = (flip, flip, zero, fill, cut, repeat)


def damage_file(store: Store, file_name: str, kind: Callable[[bytearray, int, Random], None], random: Random) -> None:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        if changed:
            kind(changed, random.randrange(len(changed)), random)
        return bytes(changed)

    rewrite_file(store, f"{FOLDER}/{file_name}", change)


def write_damaged_directory(random: Random, *, files: tuple[str, ...] = ("",)) -> Store:
    """Write a directory, closed or left by a killed broker, and damage some of its files."""
    store = memory_store()
    closed = random.random() < 0.6
    directory, _ = write_directory(store, close=closed, batches=random.choice([3, 12, 24]))
    if not closed:
        directory.release()
    names = [name for name in store.files.list(store.path(FOLDER)) if name.endswith(files)]
    names = [name for name in names if not name.endswith(".metadata")]
    for _ in range(random.choice([1, 1, 2, 4])):
        damage_file(store, random.choice(names), random.choice(KINDS), random)
    return store


WRITTEN = {header.crc for header in stored_headers(write_directory(memory_store(), close=False)[1])}
"""The bytes of all batches that any of these directories has had."""


@pytest.mark.parametrize("seed", range(5))
def test_a_repaired_directory_is_sound_and_opens(seed: int) -> None:
    random = Random(seed)
    for case in range(CASES):
        store = write_damaged_directory(random)
        run_steps(plan_steps(store, truncate=True))
        left = [problem for problem in list_problems(store) if not any(words in problem.fault for words in UNREPAIRED)]
        assert left == [], case
        headers = list(stored_headers(open_log(store)))
        assert {header.crc for header in headers} <= WRITTEN, case
        assert all(earlier.last_offset < later.base_offset for earlier, later in pairwise(headers)), case


def list_sound_headers(piece: bytes, offset: int, end_offset: int) -> Iterator[BatchHeader]:
    """Return the batches before the first one that a reader of contents rejects."""
    try:
        for batch in split_batches(piece):
            header = read_header(batch)
            if not offset <= header.last_offset < end_offset or not crc_matches(batch, header):
                return
            yield header
            offset = header.last_offset + 1
    except MalformedError:
        return


def read_all(log: Log) -> list[BatchHeader]:
    """Return the batches of a reader that has damage examined and skips it."""
    headers: list[BatchHeader] = []
    offset = log.log_start_offset
    for _ in range(1000):
        if offset == log.log_end_offset:
            return headers
        before = offset
        try:
            region = log.read(offset, 300)
            assert region is not None
            for header in list_sound_headers(region.pread(0, region.size_bytes), offset, log.log_end_offset):
                headers.append(header)
                offset = header.last_offset + 1
            region.release()
        except CorruptDataError as error:
            offset = error.next_offset or offset
        if offset == before:
            log.examiner.examine_and_reindex(log.segments[log.segments.find_slot(offset)])
    raise AssertionError(f"still at {offset} of {log!r}")


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_of_a_rotten_log_reaches_its_end(seed: int) -> None:
    random = Random(seed)
    for _ in range(CASES):
        store = memory_store()
        directory, log = write_directory(store, close=False, batches=24)
        written = {header.crc for header in read_all(log)}
        for name in random.sample([name for name in store.files.list(store.path(FOLDER)) if name.endswith(".log")], 2):
            damage_file(store, name, random.choice((flip, flip, zero)), random)
        log.state.recent_batches.clear()
        assert {header.crc for header in read_all(log)} <= written
        for segment in log.segments:
            log.examiner.examine(segment)
        assert {header.crc for header in read_all(log)} <= written
        directory.release()
