"""Random rot of logs and indexes: every intact batch stays readable, in any order of reads."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.segment.corruption import CorruptDataError
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import build_batch, crc_matches, read_header, split_batches
from tests.storage.conftest import memory_store
from tests.storage.support import NOW_MS, Store, append_batch, create_log, roll_log

CASES = 30


def build_log(random: Random) -> tuple[Store, Log]:
    """Create a log of some rolled segments and an active one; often all batches have the same size, a power of two."""
    store = memory_store()
    log = create_log(store, index_interval_bytes=random.choice([1, 200, 4096]))
    size_bytes = random.choice([58, 58, None])
    for number in range(random.choice([5, 40, 80])):
        count = 1 if size_bytes else random.randint(1, 5)
        value = b"v" * (size_bytes or random.randint(0, 300))
        append_batch(log, build_batch([(NOW_MS + number, b"k", value, [])] * count))
        if random.random() < 0.1:
            roll_log(log)
    log.flush()
    return store, log


def rot_file(store: Store, path: str, random: Random) -> None:
    """Flip a bit of a file, or overwrite some bytes with zeros or garbage."""
    file = store.files.open(path)
    data = bytearray(file.pread(file.size(), 0))
    if data:
        at = random.randrange(len(data))
        end = min(len(data), at + random.choice([1, 1, 1, 30, 300]))
        data[at:end] = random.choice([bytes([data[at] ^ 1 << random.randrange(8)]), random.randbytes(end - at)]).ljust(
            end - at, b"\0"
        )
        file.truncate(0)
        file.append((bytes(data),), len(data))
    file.close()


def read_stored(log: Log) -> dict[int, bytes]:
    """Return the bytes of every batch, by base offset."""
    batches = {}
    for segment in log.segments:
        with segment.pin() as file:
            for batch in split_batches(file.file.pread(segment.size_bytes, 0)):
                batches[read_header(batch).base_offset] = bytes(batch)
    return batches


def find_intact(log: Log, written: dict[int, bytes]) -> dict[int, bytes]:
    """Return the batches that are still intact."""
    batches = {}
    position, segment = 0, log.segments[0]
    for base_offset, data in written.items():
        if (holder := log.segments[log.segments.find_slot(base_offset)]) is not segment:
            position, segment = 0, holder
        with segment.pin() as file:
            if file.file.pread(len(data), position) == data:
                batches[base_offset] = data
        position += len(data)
    return batches


def read_through(log: Log) -> Iterator[bytes]:
    """Return the batches of a reader that compares checksums, has damage examined, and continues after it."""
    offset, looked = log.log_start_offset, -1
    while offset < log.log_end_offset:
        before = offset
        try:
            region = log.read(offset, 300)
            assert region is not None, offset
            data = region.pread(0, region.size_bytes)
            region.release()
            for batch in _list_believed(data, offset, log.log_end_offset):
                yield batch
                offset = read_header(batch).last_offset + 1
        except CorruptDataError as error:
            offset = error.next_offset or offset
        if offset == before:
            assert looked != offset, f"still at {offset}"
            looked = offset
            log.examiner.examine_and_reindex(log.segments[log.segments.find_slot(offset)])


def _list_believed(data: bytes, offset: int, end_offset: int) -> Iterator[bytes]:
    try:
        for batch in split_batches(data):
            header = read_header(batch)
            if not offset <= header.last_offset < end_offset or not crc_matches(batch, header):
                return
            yield bytes(batch)
            offset = header.last_offset + 1
    except MalformedError:
        return


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scrubbed", [True, False])
def test_intact_batches_are_read(seed: int, scrubbed: bool) -> None:
    random = Random(seed)
    for case in range(CASES):
        store, log = build_log(random)
        written = read_stored(log)
        paths = [segment.files.path(suffix) for segment in log.segments for suffix in (".log", ".log", ".index")]
        for path in random.sample(paths, min(len(paths), random.choice([1, 2]))):
            rot_file(store, path, random)
        for segment in log.segments:
            if segment.sealed:
                segment.unload()
        log.state.recent_batches.clear()
        if scrubbed:
            for segment in log.segments:
                log.examiner.examine(segment)
        whole = find_intact(log, written)
        batches = {read_header(batch).base_offset: batch for batch in read_through(log)}
        missing = whole.keys() - batches.keys()
        assert not missing, (case, sorted(missing))
        assert all(batches[base_offset] == data for base_offset, data in whole.items()), case
