"""Finding records by timestamp."""

from __future__ import annotations

from kafkacompat.wire.compression import Codec
from kafkacompat.wire.record_batch import assemble_batch, build_batch, read_header
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    make_batch,
)


def test_a_time_is_found_at_its_first_record(store: Store) -> None:
    log = create_log(store, segment_bytes=400, index_interval_bytes=0)
    for index in range(20):
        append_batch(log, make_batch(3, timestamp=NOW_MS + 10 * index), leader_epoch=index // 10)
    assert len(log.segments) > 3
    record = log.reader.offset_for_timestamp(NOW_MS + 10)
    assert record == (3, NOW_MS + 10, 0)
    assert log.reader.offset_for_timestamp(NOW_MS + 13) == (6, NOW_MS + 20, 0)
    assert log.reader.offset_for_timestamp(NOW_MS + 112) == (35, NOW_MS + 112, 1)
    assert log.reader.offset_for_timestamp(0) == (0, NOW_MS, 0)
    assert log.reader.offset_for_timestamp(NOW_MS + 193) is None
    assert log.reader.find_max_timestamp() == (59, NOW_MS + 192, 1)
    log.close()


def test_times_out_of_order_and_repeated(store: Store) -> None:
    log = create_log(store, segment_bytes=300, index_interval_bytes=0)
    for timestamp in (50, 10, 90, 20, 90, 60, 70, 80, 30):
        append_batch(log, make_batch(timestamp=timestamp))
    assert log.reader.find_max_timestamp() == (2, 90, 0)
    assert log.reader.offset_for_timestamp(55) == (2, 90, 0)
    assert log.reader.offset_for_timestamp(50) == (0, 50, 0)
    log.close()


def test_records_before_the_log_start_are_not_found(store: Store) -> None:
    log = create_log(store)
    append_batch(log, make_batch(5, timestamp=100))
    log.trimmer.advance_log_start_offset(3)
    assert log.reader.offset_for_timestamp(0) == (3, 103, 0)
    log.close()


def test_an_empty_log_has_no_times(store: Store) -> None:
    log = create_log(store)
    assert log.reader.find_max_timestamp() is None
    assert log.reader.offset_for_timestamp(0) is None
    append_batch(log, make_batch(timestamp=-1))
    assert log.reader.find_max_timestamp() is None
    log.close()


def test_times_are_found_in_compressed_batches(store: Store) -> None:
    log = create_log(store)
    append_batch(log, build_batch([(5, b"k", b"v", []), (9, b"k", b"v", []), (7, b"k", b"v", [])], codec=Codec.LZ4))
    assert log.reader.offset_for_timestamp(6) == (1, 9, 0)
    assert log.reader.find_max_timestamp() == (1, 9, 0)
    log.close()


def test_a_search_returns_a_batch_that_cannot_be_decompressed_as_a_whole(store: Store) -> None:
    log = create_log(store, validation="header")
    append_batch(log, make_batch(timestamp=5))
    sent = make_batch(3, timestamp=10, codec=Codec.GZIP)
    append_batch(log, assemble_batch(read_header(sent), b"no gzip"))
    append_batch(log, make_batch(timestamp=20))
    assert log.reader.offset_for_timestamp(6) == (1, 12, 0)
    assert log.reader.offset_for_timestamp(13) == (4, 20, 0)
    log.close()
