"""Making a log shorter at either end, and closing it."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.partition_metadata import read_partition_metadata
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.fakes.memory_files import MemoryFiles
from tests.storage.support import (
    NOW_MS,
    TOPIC_ID,
    Store,
    append_batch,
    create_log,
    fill_log,
    make_batch,
    reopen_log,
    stored_headers,
)


@pytest.mark.parametrize("target", [0, 1, 7, 14, 15, 16, 29, 30, 31])
def test_truncation_keeps_earlier_batches(store: Store, target: int) -> None:
    log = create_log(store, segment_bytes=300, index_interval_bytes=0)
    fill_log(log, 30)
    log.flush()
    log.trimmer.truncate_to(target)
    end = min(target, 30)
    assert log.log_end_offset == end
    assert log.recovery_point <= end
    assert [header.base_offset for header in stored_headers(log)] == list(range(end))
    assert append_batch(log, make_batch(timestamp=NOW_MS + end)).base_offset == end
    assert [header.base_offset for header in stored_headers(log)] == list(range(end + 1))
    expected = list(stored_headers(log))
    log.close()
    again = reopen_log(store, clean=True, segment_bytes=300)
    assert list(stored_headers(again)) == expected
    assert again.reader.find_max_timestamp() == (end, NOW_MS + end, 0)
    again.close()


def test_truncation_inside_a_batch_drops_the_batch(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(5))
    append_batch(log, make_batch(5))
    log.trimmer.truncate_to(7)
    assert log.log_end_offset == 5
    assert append_batch(log, make_batch()).base_offset == 5
    log.close()


def test_truncation_takes_back_epochs_and_producers(store: Store) -> None:
    log = create_log(store)
    for index in range(4):
        append_batch(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=index), leader_epoch=index)
    log.trimmer.truncate_to(2)
    assert log.leader_epochs.entries == [(0, 0), (1, 1)]
    assert log.producer_state.producers[7].batches[-1].last_sequence == 1
    again = append_batch(log, make_batch(producer_id=7, producer_epoch=0, base_sequence=2), leader_epoch=8)
    assert (again.base_offset, again.duplicate) == (2, False)
    log.close()


def test_truncation_before_the_oldest_segment_starts_over(store: Store) -> None:
    log = create_log(store, segment_bytes=300)
    fill_log(log, 10)
    log.trimmer.detach(list(log.segments)[:2])
    start = log.log_start_offset
    assert start > 1
    log.trimmer.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert append_batch(log, make_batch()).base_offset == 1
    log.close()


def test_the_log_start_moves_only_forward_and_not_past_the_end(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 5)
    assert log.trimmer.advance_log_start_offset(3)
    assert not log.trimmer.advance_log_start_offset(2)
    assert log.log_start_offset == 3
    with pytest.raises(KafkaError) as refused:
        log.trimmer.advance_log_start_offset(6)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError):
        log.read(2, 100)
    assert log.leader_epochs.entries == [(0, 3)]
    log.close()


def test_a_closed_log_takes_nothing(store: Store) -> None:
    log = create_log(store)
    fill_log(log, 1)
    log.close()
    log.close()
    assert log.state.closed
    for use in (lambda: append_batch(log, make_batch()), lambda: log.read(0, 1), log.flush):
        with pytest.raises(KafkaError) as refused:
            use()
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_no_handle_stays_open(memory: Store) -> None:
    files = memory.files
    assert isinstance(files, MemoryFiles)
    log = create_log(memory, segment_bytes=300)
    fill_log(log, 20)
    region = log.read(0, 100)
    assert region is not None
    log.trimmer.truncate_to(15)
    list(stored_headers(log))
    log.reader.offset_for_timestamp(NOW_MS)
    log.close()
    assert files.open_handles == 1
    region.release()
    assert files.open_handles == 0
    again = reopen_log(memory, segment_bytes=300)
    list(stored_headers(again))
    again.close()
    assert files.open_handles == 0


def test_the_folder_names_its_topic(store: Store) -> None:
    create_log(store).close()
    assert read_partition_metadata(store.files, store.path("t-0")) == TOPIC_ID
