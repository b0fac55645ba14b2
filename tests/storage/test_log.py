"""A log in use: offsets, reads, rolling, lookups, truncation."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log import Log, OffsetPosition, RollNeededError
from kafkacompat.storage.log_config import LOG_APPEND_TIME
from kafkacompat.storage.lookup import ColdDataError
from kafkacompat.storage.partition_metadata import read_partition_metadata
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import assemble, build_batch, read_header, read_records
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    append,
    batch,
    create,
    fill,
    headers,
    read,
    reopen,
    roll,
    stored_headers,
)


def error_of(log: Log, records: bytes, **kw: object) -> ErrorCode:
    before = (log.log_end_offset, log.end_position(), dict(log.producer_state.producers))
    with pytest.raises(KafkaError) as refused:
        append(log, records, **kw)  # type: ignore[arg-type]
    assert before == (log.log_end_offset, log.end_position(), dict(log.producer_state.producers))
    return refused.value.code


def test_offsets_and_epochs_are_assigned(store: Store) -> None:
    log = create(store)
    first = append(log, batch(3), leader_epoch=4)
    second = append(log, batch(2), leader_epoch=5)
    assert first[:5] == (0, 2, -1, 0, False)
    assert second[:5] == (3, 4, -1, 0, False)
    assert second.end == OffsetPosition(5, 0, len(batch(3)) + len(batch(2))) == log.end_position()
    found = headers(read(log, 0))
    assert [(each.base_offset, each.partition_leader_epoch) for each in found] == [(0, 4), (3, 5)]
    assert log.offset_for_leader_epoch(4) == (4, 3)
    assert log.leader_epochs.epoch_for_offset(3) == 5
    log.close()


def test_stored_bytes_are_the_clients_but_for_offset_and_epoch(store: Store) -> None:
    log = create(store)
    sent = batch(3, codec=Codec.GZIP)
    append(log, batch())
    append(log, memoryview(b"frame" + sent)[5:], leader_epoch=7)
    data = read(log, 1)
    assert data[8:12] == sent[8:12]
    assert data[16:] == sent[16:]
    assert [record.offset for record in read_records(data)] == [1, 2, 3]
    log.close()


def test_a_duplicate_gets_its_first_answer(store: Store) -> None:
    log = create(store)
    sent = batch(3, producer_id=7, producer_epoch=0, base_sequence=0)
    append(log, batch())
    append(log, sent)
    again = append(log, sent)
    assert again[:5] == (1, 3, NOW_MS + 2, 0, True)
    assert log.log_end_offset == 4
    assert error_of(log, batch(2, producer_id=7, producer_epoch=0, base_sequence=4)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    log.close()


def test_log_append_time_is_answered(store: Store) -> None:
    log = create(store, message_timestamp_type=LOG_APPEND_TIME)
    assert append(log, batch(timestamp=3), now_ms=NOW_MS).log_append_time_ms == NOW_MS
    assert [record.timestamp for record in read_records(read(log, 0))] == [NOW_MS]
    log.close()


def test_transactional_batches_of_clients_are_refused_without_a_transaction(store: Store) -> None:
    log = create(store)
    sent = batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert error_of(log, sent) == ErrorCode.INVALID_TXN_STATE
    log.close()


def test_a_batch_larger_than_a_segment_is_refused(store: Store) -> None:
    log = create(store, segment_bytes=200)
    assert error_of(log, batch(size_bytes=200)) == ErrorCode.RECORD_LIST_TOO_LARGE
    log.close()


# --- reading ---


def test_reads_end_at_the_upper_bound_and_the_size_limit(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    upper = log.end_position()
    fill(log, 3)
    size = len(batch())
    assert [each.base_offset for each in headers(read(log, 1, upper=upper))] == [1, 2]
    assert read(log, 3, upper=upper) == b""
    assert read(log, 5, upper=upper) == b""
    assert len(read(log, 0, max_bytes=2 * size + 5)) == 2 * size + 5
    assert len(read(log, 0, max_bytes=1)) == size
    assert read(log, 0, max_bytes=size - 1, at_least_one_batch=False) == b""
    assert len(read(log, 0, max_bytes=size, at_least_one_batch=False)) == size
    assert read(log, 6) == b""
    log.close()


@pytest.mark.parametrize("offset", [-1, 7])
def test_reads_outside_the_log_are_refused(store: Store, offset: int) -> None:
    log = create(store)
    fill(log, 6)
    with pytest.raises(KafkaError) as refused:
        log.read(offset, 100)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.close()


def test_an_offset_inside_a_batch_reads_from_its_beginning(store: Store) -> None:
    log = create(store, segment_bytes=2000)
    for _ in range(40):
        append(log, batch(5))
    assert len(log.segments) > 2
    for offset in range(200):
        first = headers(read(log, offset))[0]
        assert first.base_offset == offset - offset % 5
    log.close()


def test_remembered_batches_and_index_agree(store: Store) -> None:
    """The short cut for the last batches gives what the index and a scan give."""
    log = create(store, segment_bytes=1 << 20, index_interval_bytes=100)
    for index in range(400):
        append(log, batch(1 + index % 3, size_bytes=index % 50))
    ends = [header.base_offset for header in stored_headers(log, 0)]
    with_memory = [read(log, offset, 500) for offset in ends]
    log.close()
    again = reopen(store, clean=True)
    assert [read(again, offset, 500) for offset in ends] == with_memory
    again.close()


def test_segments_follow_each_other_in_reads(store: Store) -> None:
    log = create(store, segment_bytes=300)
    fill(log, 30)
    assert len(log.segments) > 5
    assert [each.base_offset for each in stored_headers(log)] == list(range(30))
    last_of_first = log.segments[1].base_offset - 1
    # A region ends with its segment.
    assert headers(read(log, last_of_first))[-1].last_offset == last_of_first
    log.close()


def test_an_upper_bound_in_an_earlier_segment_hides_later_ones(store: Store) -> None:
    log = create(store, segment_bytes=300)
    fill(log, 2)
    upper = log.end_position()
    fill(log, 10)
    assert [each.base_offset for each in headers(read(log, 0, upper=upper))] == [0, 1]
    assert log.segments.active.base_offset > 2
    assert read(log, log.segments.active.base_offset, upper=upper) == b""
    log.close()


def test_an_upper_bound_at_the_very_end_of_a_rolled_segment(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    upper = log.end_position()
    roll(log)
    fill(log, 3)
    assert [each.base_offset for each in headers(read(log, 0, upper=upper))] == [0, 1, 2]
    log.close()


def test_a_cold_place_is_not_waited_for(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create(memory, segment_bytes=300)
    fill(log, 10)
    log.close()
    log = reopen(memory, clean=True, segment_bytes=300)
    with pytest.raises(ColdDataError):
        log.read(0, 100, may_block=False)
    log.warm(0)
    region = log.read(0, 100, may_block=False)
    assert region is not None
    region.release()
    files.cold = True
    with pytest.raises(ColdDataError):
        log.read(1, 100, may_block=False)
    # The tail that was just written needs no look at the file.
    files.cold = False
    append(log, batch())
    files.cold = True
    region = log.read(10, 100, may_block=False)
    assert region is not None and not region.is_resident(0, region.size_bytes)
    region.load(0, region.size_bytes)
    assert region.is_resident(0, region.size_bytes)
    region.release()
    log.close()


def test_a_released_region_is_of_no_use(store: Store) -> None:
    log = create(store)
    fill(log, 1)
    region = log.read(0, 100)
    assert region is not None
    region.release()
    region.release()
    with pytest.raises(ValueError, match="released"):
        region.pread(0, 10)
    log.close()


def test_regions_know_their_place(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    region = log.read(1, 100)
    assert region is not None
    size = len(batch())
    assert (region.position, region.size_bytes) == (size, 100)
    assert region.pread(10, 1000) == read(log, 0)[size + 10 : size + 100]
    region.release()
    log.close()


# --- rolling ---


def test_an_append_that_needs_a_roll_changes_nothing(store: Store) -> None:
    log = create(store, segment_bytes=200)
    fill(log, 2)
    before = log.end_position()
    assert log.needs_roll(len(batch()), NOW_MS)
    with pytest.raises(RollNeededError):
        log.append(batch(), leader_epoch=9, now_ms=NOW_MS, from_client=True)
    assert log.end_position() == before
    assert log.leader_epochs.latest == 0
    log.close()


@pytest.mark.parametrize(("age_ms", "rolls"), [(1000, False), (1001, True)])
def test_segments_roll_by_the_time_of_their_batches(store: Store, age_ms: int, rolls: bool) -> None:
    log = create(store, segment_ms=1000)
    append(log, batch(timestamp=NOW_MS))
    append(log, batch(timestamp=NOW_MS + age_ms), now_ms=NOW_MS)
    assert len(log.segments) == 1 + rolls
    log.close()


@pytest.mark.parametrize(("age_ms", "rolls"), [(1000, False), (1001, True)])
def test_segments_without_times_roll_by_the_clock(store: Store, age_ms: int, rolls: bool) -> None:
    log = create(store, segment_ms=1000)
    append(log, batch(timestamp=-1), now_ms=NOW_MS)
    append(log, batch(timestamp=-1), now_ms=NOW_MS + age_ms)
    assert len(log.segments) == 1 + rolls
    log.close()


def test_jitter_rolls_earlier_but_not_by_more_than_it_says(store: Store) -> None:
    log = create(store, segment_ms=1000, segment_jitter_ms=500)
    append(log, batch(timestamp=NOW_MS))
    ages = [age for age in range(0, 1100) if log.needs_roll(100, NOW_MS, NOW_MS + age)]
    assert 500 < ages[0] <= 1001
    log.close()


def test_a_full_index_rolls(store: Store) -> None:
    log = create(store, segment_index_bytes=40, index_interval_bytes=0)
    fill(log, 20)
    # Five entries fit the offset index, three the time index, which keeps one of them free.
    assert [segment.base_offset for segment in log.segments][:3] == [0, 3, 6]
    log.close()


def test_offsets_that_do_not_fit_the_index_roll(store: Store) -> None:
    log = create(store)
    append(log, batch())
    log.segments.active.base_offset -= 2**31 - 2
    assert not log.needs_roll(100, NOW_MS)
    log.log_end_offset += 1
    assert log.needs_roll(100, NOW_MS)
    log.release()


def test_a_segment_can_only_follow_the_logs_end(store: Store) -> None:
    log = create(store)
    with pytest.raises(ValueError, match="cannot follow"):
        log.prepare_segment(0)
    fill(log, 2)
    with pytest.raises(ValueError, match="cannot follow"):
        log.prepare_segment(1)
    prepared = log.prepare_segment(2)
    fill(log, 1)
    with pytest.raises(ValueError, match="does not begin"):
        log.roll(prepared)
    log.release()


def test_sealing_moves_the_recovery_point(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    old = log.roll(log.prepare_segment(3))
    fill(log, 2)
    assert log.recovery_point == 0
    log.seal(old)
    assert log.recovery_point == 3
    assert old.sealed
    assert log.flush() == 5 == log.recovery_point
    log.close()


def test_a_flush_seals_what_was_rolled_before_it(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    old = log.roll(log.prepare_segment(3))
    assert log.flush() == 3
    assert old.sealed
    log.seal(old)
    log.close()


def test_flush_is_overdue_after_flush_ms(store: Store) -> None:
    log = create(store, flush_ms=100)
    assert not log.flush_is_overdue(NOW_MS * 2)
    append(log, batch(), now_ms=NOW_MS)
    append(log, batch(), now_ms=NOW_MS + 50)
    assert not log.flush_is_overdue(NOW_MS + 100)
    assert log.flush_is_overdue(NOW_MS + 101)
    log.flush()
    assert not log.flush_is_overdue(NOW_MS + 101)
    log.close()


# --- looking up times ---


def test_a_time_is_found_at_its_first_record(store: Store) -> None:
    log = create(store, segment_bytes=400, index_interval_bytes=0)
    for index in range(20):
        append(log, batch(3, timestamp=NOW_MS + 10 * index), leader_epoch=index // 10)
    assert len(log.segments) > 3
    found = log.offset_for_timestamp(NOW_MS + 10)
    assert found == (3, NOW_MS + 10, 0)
    assert log.offset_for_timestamp(NOW_MS + 13) == (6, NOW_MS + 20, 0)
    assert log.offset_for_timestamp(NOW_MS + 112) == (35, NOW_MS + 112, 1)
    assert log.offset_for_timestamp(0) == (0, NOW_MS, 0)
    assert log.offset_for_timestamp(NOW_MS + 193) is None
    assert log.max_timestamp() == (59, NOW_MS + 192, 1)
    log.close()


def test_times_out_of_order_and_repeated(store: Store) -> None:
    log = create(store, segment_bytes=300, index_interval_bytes=0)
    for timestamp in (50, 10, 90, 20, 90, 60, 70, 80, 30):
        append(log, batch(timestamp=timestamp))
    assert log.max_timestamp() == (2, 90, 0)
    assert log.offset_for_timestamp(55) == (2, 90, 0)
    assert log.offset_for_timestamp(50) == (0, 50, 0)
    log.close()


def test_records_before_the_log_start_are_not_found(store: Store) -> None:
    log = create(store)
    append(log, batch(5, timestamp=100))
    log.advance_log_start_offset(3)
    assert log.offset_for_timestamp(0) == (3, 103, 0)
    log.close()


def test_an_empty_log_has_no_times(store: Store) -> None:
    log = create(store)
    assert log.max_timestamp() is None
    assert log.offset_for_timestamp(0) is None
    append(log, batch(timestamp=-1))
    assert log.max_timestamp() is None
    log.close()


def test_times_are_found_in_compressed_batches(store: Store) -> None:
    log = create(store)
    append(log, build_batch([(5, b"k", b"v", []), (9, b"k", b"v", []), (7, b"k", b"v", [])], codec=Codec.LZ4))
    assert log.offset_for_timestamp(6) == (1, 9, 0)
    assert log.max_timestamp() == (1, 9, 0)
    log.close()


def test_a_batch_that_cannot_be_unpacked_is_found_as_a_whole(store: Store) -> None:
    log = create(store, validation="header")
    append(log, batch(timestamp=5))
    sent = batch(3, timestamp=10, codec=Codec.GZIP)
    append(log, assemble(read_header(sent), b"no gzip"))
    append(log, batch(timestamp=20))
    assert log.offset_for_timestamp(6) == (1, 12, 0)
    assert log.offset_for_timestamp(13) == (4, 20, 0)
    log.close()


# --- making it shorter ---


@pytest.mark.parametrize("target", [0, 1, 7, 14, 15, 16, 29, 30, 31])
def test_truncation_keeps_what_is_before_it(store: Store, target: int) -> None:
    log = create(store, segment_bytes=300, index_interval_bytes=0)
    fill(log, 30)
    log.flush()
    log.truncate_to(target)
    end = min(target, 30)
    assert log.log_end_offset == end
    assert log.recovery_point <= end
    assert [each.base_offset for each in stored_headers(log)] == list(range(end))
    assert append(log, batch(timestamp=NOW_MS + end)).base_offset == end
    assert [each.base_offset for each in stored_headers(log)] == list(range(end + 1))
    expected = list(stored_headers(log))
    log.close()
    again = reopen(store, clean=True, segment_bytes=300)
    assert list(stored_headers(again)) == expected
    assert again.max_timestamp() == (end, NOW_MS + end, 0)
    again.close()


def test_truncation_inside_a_batch_drops_the_batch(store: Store) -> None:
    log = create(store)
    append(log, batch(5))
    append(log, batch(5))
    log.truncate_to(7)
    assert log.log_end_offset == 5
    assert append(log, batch()).base_offset == 5
    log.close()


def test_truncation_takes_back_epochs_and_producers(store: Store) -> None:
    log = create(store)
    for index in range(4):
        append(log, batch(producer_id=7, producer_epoch=0, base_sequence=index), leader_epoch=index)
    log.truncate_to(2)
    assert log.leader_epochs.entries == [(0, 0), (1, 1)]
    assert log.producer_state.producers[7].batches[-1].last_sequence == 1
    again = append(log, batch(producer_id=7, producer_epoch=0, base_sequence=2), leader_epoch=8)
    assert (again.base_offset, again.duplicate) == (2, False)
    log.close()


def test_truncation_before_the_oldest_segment_starts_over(store: Store) -> None:
    log = create(store, segment_bytes=300)
    fill(log, 10)
    log.detach(list(log.segments)[:2])
    start = log.log_start_offset
    assert start > 1
    log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert append(log, batch()).base_offset == 1
    log.close()


def test_a_region_may_outlive_the_truncation_of_its_file(store: Store) -> None:
    log = create(store)
    fill(log, 3)
    region = log.read(0, 1000)
    assert region is not None
    log.truncate_to(1)
    assert len(region.pread(0, region.size_bytes)) == len(batch())
    region.release()
    log.close()


def test_the_log_start_moves_only_forward_and_not_past_the_end(store: Store) -> None:
    log = create(store)
    fill(log, 5)
    assert log.advance_log_start_offset(3)
    assert not log.advance_log_start_offset(2)
    assert log.log_start_offset == 3
    with pytest.raises(KafkaError) as refused:
        log.advance_log_start_offset(6)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError):
        log.read(2, 100)
    assert log.leader_epochs.entries == [(0, 3)]
    log.close()


def test_a_closed_log_takes_nothing(store: Store) -> None:
    log = create(store)
    fill(log, 1)
    log.close()
    log.close()
    assert log.closed
    for use in (lambda: append(log, batch()), lambda: log.read(0, 1), log.flush):
        with pytest.raises(KafkaError) as refused:
            use()
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_no_handle_stays_open(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create(memory, segment_bytes=300)
    fill(log, 20)
    region = log.read(0, 100)
    assert region is not None
    log.truncate_to(15)
    list(stored_headers(log))
    log.offset_for_timestamp(NOW_MS)
    log.close()
    assert files.open_handles == 1
    region.release()
    assert files.open_handles == 0
    again = reopen(memory, segment_bytes=300)
    list(stored_headers(again))
    again.close()
    assert files.open_handles == 0


def test_the_folder_names_its_topic(store: Store) -> None:
    create(store).close()
    assert read_partition_metadata(store.files, store.path("t-0")) == TOPIC_ID
