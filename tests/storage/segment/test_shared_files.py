"""Open files: counted, shared, bounded."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.shared_files import SegmentCache, SegmentFile
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import TOPIC_ID, Store, fill_log, read_log, stored_headers


@pytest.fixture
def files(memory: Store) -> MemoryFiles:
    assert isinstance(memory.files, MemoryFiles)
    return memory.files


def test_the_last_user_closes_the_file(files: MemoryFiles) -> None:
    shared = SegmentFile(files.open("/logs/a", create=True))
    assert shared.acquire()
    shared.release()
    assert files.open_handles == 1
    shared.release()
    assert files.open_handles == 0
    assert not shared.acquire()


def log_with(store: Store, cache: SegmentCache) -> Log:
    config = LogConfig(segment_bytes=200)
    return Log.create(store.files, store.path("t-0"), "t", 0, TOPIC_ID, config, cache=cache)


def test_the_cache_bounds_the_open_sealed_segments(memory: Store, files: MemoryFiles) -> None:
    cache = SegmentCache(capacity=3)
    log = log_with(memory, cache)
    fill_log(log, 40)
    assert len(log.segments) == 20
    for _ in range(2):
        assert [header.base_offset for header in stored_headers(log)] == list(range(40))
        assert len(cache) == 3
        assert files.open_handles == 3 + 1
    log.close()
    assert len(cache) == 0
    assert files.open_handles == 0


def test_a_region_outlives_its_place_in_the_cache(memory: Store, files: MemoryFiles) -> None:
    log = log_with(memory, SegmentCache(capacity=1))
    fill_log(log, 10)
    region = log.read(0, 1000)
    assert region is not None
    expected = region.pread(0, 1000)
    read_log(log, 4)
    read_log(log, 6)
    assert region.pread(0, 1000) == expected
    assert read_log(log, 0) == expected
    region.release()
    log.close()
    assert files.open_handles == 0


def test_the_least_recently_used_segment_is_closed_first(memory: Store, files: MemoryFiles) -> None:
    log = log_with(memory, SegmentCache(capacity=2))
    fill_log(log, 10)
    for offset in (0, 2, 0, 4):
        read_log(log, offset)
    files.cold = False
    assert log.read(0, 0, may_block=False, at_least_one_batch=False) is None
    opened = [segment.base_offset for segment in log.segments if segment._file is not None]
    assert opened == [0, 4, 8]
    log.close()


def test_two_logs_share_a_cache(memory: Store, files: MemoryFiles) -> None:
    cache = SegmentCache(capacity=2)
    logs = []
    for index in range(2):
        log = Log.create(
            files, memory.path(f"t-{index}"), "t", index, TOPIC_ID, LogConfig(segment_bytes=200), cache=cache
        )
        fill_log(log, 10)
        logs.append(log)
    for log in logs:
        assert len(list(stored_headers(log))) == 10
    assert files.open_handles == 2 + 2
    for log in logs:
        log.close()
    assert files.open_handles == 0


def test_no_more_segments_that_are_written_to_are_open_than_may_be(memory: Store, files: MemoryFiles) -> None:
    cache = SegmentCache(most_active=2)
    config = LogConfig()
    logs = [
        Log.create(files, memory.path(f"t-{index}"), "t", index, TOPIC_ID, config, cache=cache) for index in range(5)
    ]
    assert files.open_handles == 0
    for _ in range(2):
        for log in logs:
            fill_log(log, 1)
            assert files.open_handles <= 2
    for log in logs:
        # Neither a search on the reactor thread nor an operation of the disk thread keeps more files open.
        region = log.read(0, 1000, may_block=False)
        assert region is not None
        assert files.open_handles <= 3
        region.release()
        log.flush()
        log.reader.warm(0)
        assert files.open_handles <= 2
        assert [header.base_offset for header in stored_headers(log)] == [0, 1]
    for log in logs:
        log.close()
    assert files.open_handles == 0


def test_a_region_outlives_the_place_of_an_active_segment(memory: Store, files: MemoryFiles) -> None:
    cache = SegmentCache(most_active=1)
    logs = [
        Log.create(files, memory.path(f"t-{index}"), "t", index, TOPIC_ID, LogConfig(), cache=cache)
        for index in range(2)
    ]
    fill_log(logs[0], 1)
    region = logs[0].read(0, 1000, may_block=False)
    assert region is not None
    expected = region.pread(0, 1000)
    fill_log(logs[1], 1)
    assert logs[0].segments.active._file is None
    assert region.pread(0, 1000) == expected
    region.release()
    assert files.open_handles == 1


def test_a_rolled_segment_counts_as_sealed(memory: Store, files: MemoryFiles) -> None:
    cache = SegmentCache(capacity=1, most_active=1)
    log = log_with(memory, cache)
    fill_log(log, 10)
    assert files.open_handles <= 2


def test_a_process_of_few_open_files_leaves_some_for_clients() -> None:
    cache = SegmentCache.for_open_files(1024)
    assert (cache._capacity, cache._most_active) == (128, 512)
