"""Idempotent producers: duplicates, gaps, epochs, wrap-around, expiry (KIP-98, KIP-360)."""

from __future__ import annotations

import gc
import sys

import pytest

from kafkacompat.storage.producers.producer import BATCHES_KEPT, MAX_SEQUENCE, PRODUCER_ENTRY, StoredBatch
from kafkacompat.storage.producers.state import ProducerState
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import BatchHeader

TRANSACTIONAL = 0x10


def make_header(sequence: int, count: int = 1, epoch: int = 0, timestamp: int = 5, attributes: int = 0) -> BatchHeader:
    return BatchHeader(0, 100, 0, 2, 0, attributes, count - 1, timestamp, timestamp, 7, epoch, sequence, count)


def state_after(*batches: BatchHeader) -> ProducerState:
    state, offset = ProducerState(), 0
    for batch in batches:
        assert state.check_batch(batch, True, NOT_VERIFIED) is None
        state.add_batch(batch, offset)
        offset += batch.record_count
    return state


def catch_code(state: ProducerState, batch: BatchHeader, from_client: bool = True) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        state.check_batch(batch, from_client)
    return refused.value.code


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert ProducerState().check_batch(make_header(17), True) is None


def test_batches_follow_without_a_gap() -> None:
    state = state_after(make_header(0, 3), make_header(3, 2))
    assert state.check_batch(make_header(5), True) is None
    assert catch_code(state, make_header(6)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert catch_code(state, make_header(4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_each_of_the_last_five_batches_is_recognised() -> None:
    state = state_after(*(make_header(sequence * 2, 2, timestamp=sequence) for sequence in range(6)))
    for sequence in range(1, 6):
        duplicate = state.check_batch(make_header(sequence * 2, 2), True)
        assert duplicate == StoredBatch(sequence * 2 + 1, sequence * 2 + 1, 1, sequence)
        assert (duplicate.base_offset, duplicate.first_sequence) == (sequence * 2, sequence * 2)
    assert catch_code(state, make_header(0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_overlaps_partly_is_no_duplicate() -> None:
    state = state_after(make_header(0, 4))
    assert catch_code(state, make_header(0, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert catch_code(state, make_header(1, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_numbers_wrap_to_zero() -> None:
    state = state_after(make_header(MAX_SEQUENCE - 1, 2))
    assert state.check_batch(make_header(0), True) is None
    assert catch_code(state, make_header(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_may_span_the_wrap() -> None:
    state = state_after(make_header(MAX_SEQUENCE - 1, 4))
    assert state.check_batch(make_header(2), True) is None
    duplicate = state.check_batch(make_header(MAX_SEQUENCE - 1, 4), True)
    assert duplicate is not None and duplicate.first_sequence == MAX_SEQUENCE - 1


def test_a_new_epoch_begins_at_zero_and_drops_the_old_batches() -> None:
    state = state_after(make_header(0), make_header(1))
    assert catch_code(state, make_header(2, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check_batch(make_header(0, epoch=1), True) is None
    state.add_batch(make_header(0, epoch=1), 2)
    assert catch_code(state, make_header(1, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [batch.last_offset for batch in state.producers[7].batches] == [2]


def test_a_batch_of_the_broker_itself_needs_no_sequence_but_the_epoch() -> None:
    state = state_after(make_header(0, epoch=1))
    assert state.check_batch(make_header(9, epoch=1), False) is None
    assert catch_code(state, make_header(0, epoch=0), from_client=False) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_takes_no_other_batches() -> None:
    state = state_after(make_header(0, attributes=TRANSACTIONAL))
    assert catch_code(state, make_header(1)) == ErrorCode.INVALID_TXN_STATE
    assert state.check_batch(make_header(1, attributes=TRANSACTIONAL), True) is None
    state.end_transaction(make_header(-1, epoch=1), coordinator_epoch=4)
    assert state.producers[7].coordinator_epoch == 4
    assert state.check_batch(make_header(0, epoch=1), True) is None
    assert catch_code(state, make_header(1, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_idle_producers_expire() -> None:
    state = state_after(make_header(0, timestamp=100))
    state.remove_expired(199, 100)
    assert len(state) == 1
    state.remove_expired(200, 100)
    assert len(state) == 0


def test_a_producer_with_an_open_transaction_does_not_expire() -> None:
    state = state_after(make_header(0, attributes=TRANSACTIONAL))
    state.remove_expired(10**15, 1)
    assert len(state) == 1


def test_a_million_producers_take_little_memory_and_no_time_of_the_garbage_collector() -> None:
    state = ProducerState()
    for sequence in range(BATCHES_KEPT + 2):
        state.add_batch(make_header(sequence), sequence)
    (data,) = state.producers.packed.values()
    assert sys.getsizeof(data) <= 200
    assert not gc.is_tracked(data)
    assert [batch.last_sequence for batch in state.producers[7].batches] == [2, 3, 4, 5, 6]


def test_producers_may_be_written_down_while_others_come() -> None:
    state = ProducerState()
    state.add_batch(make_header(0), 0)
    values, names = state.producers.values(), iter(state.producers)
    state.producers.packed[8] = state.producers.packed.pop(7)
    assert [producer.producer_id for producer in values] == list(names) == [7]
    assert [len(entry) for entry in state.producers.entries()] == [PRODUCER_ENTRY.size]
