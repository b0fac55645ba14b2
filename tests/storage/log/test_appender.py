"""Appending to a log: offsets, epochs, duplicates, rejected batches."""

from __future__ import annotations

import pytest

from kafkacompat.storage.log.log import Log, OffsetPosition
from kafkacompat.storage.log_config import LOG_APPEND_TIME
from kafkacompat.wire.compression import Codec
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import read_records
from tests.storage.support import (
    NOW_MS,
    Store,
    append_batch,
    create_log,
    make_batch,
    read_headers,
    read_log,
)


def error_of(log: Log, records: bytes, **kw: object) -> ErrorCode:
    before = (log.log_end_offset, log.end_position(), dict(log.producer_state.producers))
    with pytest.raises(KafkaError) as refused:
        append_batch(log, records, **kw)  # type: ignore[arg-type]
    assert before == (log.log_end_offset, log.end_position(), dict(log.producer_state.producers))
    return refused.value.code


def test_offsets_and_epochs_are_assigned(store: Store) -> None:
    log = create_log(store)
    first = append_batch(log, make_batch(3), leader_epoch=4)
    second = append_batch(log, make_batch(2), leader_epoch=5)
    assert first[:5] == (0, 2, -1, 0, False)
    assert second[:5] == (3, 4, -1, 0, False)
    assert second.end == OffsetPosition(5, 0, len(make_batch(3)) + len(make_batch(2))) == log.end_position()
    headers = read_headers(read_log(log, 0))
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(0, 4), (3, 5)]
    assert log.reader.offset_for_leader_epoch(4) == (4, 3)
    assert log.leader_epochs.epoch_for_offset(3) == 5
    log.close()


def test_stored_bytes_are_the_clients_but_for_offset_and_epoch(store: Store) -> None:
    log = create_log(store)
    sent = make_batch(3, codec=Codec.GZIP)
    append_batch(log, make_batch())
    append_batch(log, memoryview(b"frame" + sent)[5:], leader_epoch=7)
    data = read_log(log, 1)
    assert data[8:12] == sent[8:12]
    assert data[16:] == sent[16:]
    assert [record.offset for record in read_records(data)] == [1, 2, 3]
    log.close()


def test_a_duplicate_gets_its_first_answer(store: Store) -> None:
    log = create_log(store)
    sent = make_batch(3, producer_id=7, producer_epoch=0, base_sequence=0)
    append_batch(log, make_batch())
    append_batch(log, sent)
    again = append_batch(log, sent)
    assert again[:5] == (1, 3, NOW_MS + 2, 0, True)
    assert log.log_end_offset == 4
    assert error_of(log, make_batch(2, producer_id=7, producer_epoch=0, base_sequence=4)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    log.close()


def test_log_append_time_is_answered(store: Store) -> None:
    log = create_log(store, message_timestamp_type=LOG_APPEND_TIME)
    assert append_batch(log, make_batch(timestamp=3), now_ms=NOW_MS).log_append_time_ms == NOW_MS
    assert [record.timestamp for record in read_records(read_log(log, 0))] == [NOW_MS]
    log.close()


def test_transactional_batches_of_clients_are_refused_without_a_transaction(store: Store) -> None:
    log = create_log(store)
    sent = make_batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert error_of(log, sent) == ErrorCode.INVALID_TXN_STATE
    log.close()


def test_a_batch_larger_than_a_segment_is_refused(store: Store) -> None:
    log = create_log(store, segment_bytes=200)
    assert error_of(log, make_batch(size_bytes=200)) == ErrorCode.RECORD_LIST_TOO_LARGE
    log.close()
