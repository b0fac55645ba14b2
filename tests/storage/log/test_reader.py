"""Reading from a log: bounds, segments, cold data."""

from __future__ import annotations

import pytest

from kafkacompat.storage.segment.header_scan import ColdDataError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    read_headers,
    read_log,
    reopen_log,
    roll_log,
    stored_headers,
)


def test_reads_end_at_the_upper_bound_and_the_size_limit(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    upper = log.end_position()
    fill_log(log, 3)
    size = len(make_batch())
    assert [header.base_offset for header in read_headers(read_log(log, 1, upper=upper))] == [1, 2]
    assert read_log(log, 3, upper=upper) == b""
    assert read_log(log, 5, upper=upper) == b""
    assert len(read_log(log, 0, max_bytes=2 * size + 5)) == 2 * size + 5
    assert len(read_log(log, 0, max_bytes=1)) == size
    assert read_log(log, 0, max_bytes=size - 1, at_least_one_batch=False) == b""
    assert len(read_log(log, 0, max_bytes=size, at_least_one_batch=False)) == size
    assert read_log(log, 6) == b""
    log.close()


@pytest.mark.parametrize("offset", [-1, 7])
def test_reads_outside_the_log_are_refused(store: Store, offset: int) -> None:
    log = create_log(store)
    fill_log(log, 6)
    with pytest.raises(KafkaError) as refused:
        log.read(offset, 100)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()


def test_an_offset_inside_a_batch_reads_from_its_beginning(store: Store) -> None:
    log = create_log(store, segment_bytes=2000)
    for _ in range(40):
        append_batch(log, make_batch(5))
    assert len(log.segments) > 2
    for offset in range(200):
        first = read_headers(read_log(log, offset))[0]
        assert first.base_offset == offset - offset % 5
    log.close()


def test_remembered_batches_and_index_agree(store: Store) -> None:
    """The remembered positions of the last batches agree with the index."""
    log = create_log(store, segment_bytes=1 << 20, index_interval_bytes=100)
    for index in range(400):
        append_batch(log, make_batch(1 + index % 3, size_bytes=index % 50))
    ends = [header.base_offset for header in stored_headers(log, 0)]
    with_memory = [read_log(log, offset, 500) for offset in ends]
    log.close()
    again = reopen_log(store, clean=True)
    assert [read_log(again, offset, 500) for offset in ends] == with_memory
    again.close()


def test_segments_follow_each_other_in_reads(store: Store) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 30)
    assert len(log.segments) > 5
    assert [header.base_offset for header in stored_headers(log)] == list(range(30))
    last_of_first = log.segments[1].base_offset - 1
    # A region ends with its segment.
    assert read_headers(read_log(log, last_of_first))[-1].last_offset == last_of_first
    log.close()


def test_an_upper_bound_in_an_earlier_segment_hides_later_ones(store: Store) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 2)
    upper = log.end_position()
    fill_log(log, 10)
    assert [header.base_offset for header in read_headers(read_log(log, 0, upper=upper))] == [0, 1]
    assert log.segments.active.base_offset > 2
    assert read_log(log, log.segments.active.base_offset, upper=upper) == b""
    log.close()


def test_an_upper_bound_at_the_very_end_of_a_rolled_segment(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    upper = log.end_position()
    roll_log(log)
    fill_log(log, 3)
    assert [header.base_offset for header in read_headers(read_log(log, 0, upper=upper))] == [0, 1, 2]
    log.close()


def test_a_cold_place_is_not_waited_for(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory, segment_bytes=300)
    fill_log(log, 10)
    log.close()
    log = reopen_log(memory, clean=True, segment_bytes=300)
    with pytest.raises(ColdDataError):
        log.read(0, 100, may_block=False)
    log.reader.warm(0)
    region = log.read(0, 100, may_block=False)
    assert region is not None
    region.release()
    files.cold = True
    with pytest.raises(ColdDataError):
        log.read(1, 100, may_block=False)
    # A read at the tail needs no read of the file.
    files.cold = False
    append_batch(log, make_batch())
    files.cold = True
    region = log.read(10, 100, may_block=False)
    assert region is not None and not region.is_resident(0, region.size_bytes)
    region.load(0, region.size_bytes)
    assert region.is_resident(0, region.size_bytes)
    region.release()
    log.close()


def test_a_released_region_is_of_no_use(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    region = log.read(0, 100)
    assert region is not None
    region.release()
    region.release()
    with pytest.raises(ValueError, match="released"):
        region.pread(0, 10)
    log.close()


def test_regions_know_their_place(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 3)
    region = log.read(1, 100)
    assert region is not None
    size = len(make_batch())
    assert (region.position, region.size_bytes) == (size, 100)
    assert region.pread(10, 1000) == read_log(log, 0)[size + 10 : size + 100]
    region.release()
    log.close()
