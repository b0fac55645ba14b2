"""The rules of sequence numbers: what is repeated in which order, and when a producer takes a new epoch."""

from __future__ import annotations

from kafkacompat.history.events import HistoryPartition
from kafkacompat.wire.errors import ErrorCode
from tests.simulation.clients.batches import Batch, BatchValue, ProducerIdentity
from tests.simulation.clients.sequences import Sequences

PLACE = HistoryPartition("t", 0)
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
NETWORK = ErrorCode.NETWORK_EXCEPTION
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def make(*, is_transactional: bool = False) -> Sequences:
    sequences = Sequences(is_transactional=is_transactional)
    sequences.begin(ProducerIdentity(7, 0))
    return sequences


def send(sequences: Sequences, values: int = 2) -> Batch:
    batch = Batch(PLACE, 0, 0.0, [BatchValue(number, "v", 0) for number in range(values)])
    assert sequences.may_send(batch)
    sequences.assign(batch)
    return batch


def test_the_earliest_batch_in_flight_is_repeated_first() -> None:
    sequences = make()
    first, second = send(sequences), send(sequences)
    assert (first.sequence, second.sequence) == (0, 2)
    assert sequences.should_retry(second, NETWORK, -1) and not sequences.may_send(second)
    assert sequences.should_retry(first, NETWORK, -1) and sequences.may_send(first)
    sequences.complete(first, 0)
    assert sequences.may_send(second)


def test_a_batch_out_of_order_is_repeated_while_it_is_not_the_next() -> None:
    sequences = make()
    send(sequences)
    second = send(sequences)
    assert sequences.should_retry(second, OUT_OF_ORDER, -1)
    assert not sequences.needs_bump


def test_the_next_batch_out_of_order_shows_a_gap_and_takes_a_new_epoch() -> None:
    sequences = make()
    sequences.complete(send(sequences), 0)
    second, third = send(sequences), send(sequences)
    assert sequences.should_retry(second, OUT_OF_ORDER, -1) and sequences.needs_bump
    sequences.bump()
    assert [(batch.sequence, batch.identity.epoch) for batch in (second, third)] == [(0, 1), (2, 1)]
    assert sequences.should_retry(third, OUT_OF_ORDER, -1) and not sequences.needs_bump


def test_nothing_new_is_sent_after_a_batch_of_unknown_fate_until_the_others_are_done() -> None:
    sequences = make()
    first, second = send(sequences), send(sequences)
    first.is_repeated = True
    sequences.fail(first, TIMED_OUT, is_rejected=False)
    assert not sequences.may_send(Batch(PLACE, 2, 0.0, [BatchValue(4, "v", 0)]))
    assert not sequences.resolve()
    sequences.complete(second, 2)
    assert not sequences.resolve()
    assert send(sequences).sequence == 4


def test_a_new_epoch_follows_when_all_fates_are_unknown() -> None:
    sequences = make()
    batch = send(sequences)
    batch.is_repeated = True
    sequences.fail(batch, TIMED_OUT, is_rejected=False)
    assert sequences.resolve()
    sequences.bump()
    assert (send(sequences).sequence, sequences.identity) == (0, ProducerIdentity(7, 1))


def test_the_batch_after_one_of_unknown_fate_takes_a_new_epoch_if_that_one_is_missing() -> None:
    sequences = make()
    first, second = send(sequences), send(sequences)
    first.is_repeated = True
    sequences.fail(first, TIMED_OUT, is_rejected=False)
    assert sequences.should_retry(second, OUT_OF_ORDER, -1) and sequences.needs_bump


def test_a_transaction_closes_the_gap_of_a_rejected_batch() -> None:
    sequences = make(is_transactional=True)
    first, second = send(sequences), send(sequences)
    sequences.fail(first, ErrorCode.INVALID_TXN_STATE, is_rejected=True)
    assert second.sequence == 0 and send(sequences).sequence == 2
    assert not sequences.needs_bump


def test_the_number_of_a_rejected_batch_that_may_be_in_the_log_is_doubtful() -> None:
    sequences = make(is_transactional=True)
    sequences.complete(send(sequences), 0)
    second, third, fourth = send(sequences), send(sequences), send(sequences)
    assert sequences.should_retry(second, TIMED_OUT, -1)
    second.is_repeated = True
    sequences.fail(second, ErrorCode.INVALID_PRODUCER_EPOCH, is_rejected=True)
    assert third.sequence == 2 and third.has_doubtful_sequence and fourth.has_doubtful_sequence
    sequences.fail(third, ErrorCode.INVALID_PRODUCER_EPOCH, is_rejected=True)
    assert fourth.sequence == 2 and fourth.has_doubtful_sequence


def test_the_number_of_a_batch_that_was_rejected_at_once_is_free() -> None:
    sequences = make(is_transactional=True)
    first, second = send(sequences), send(sequences)
    sequences.fail(first, ErrorCode.INVALID_TXN_STATE, is_rejected=True)
    assert second.sequence == 0 and not second.has_doubtful_sequence


def test_deleted_records_take_what_the_broker_knew_of_a_producer() -> None:
    sequences = make()
    sequences.complete(send(sequences), 5)
    second = send(sequences)
    assert sequences.should_retry(second, ErrorCode.UNKNOWN_PRODUCER_ID, 8) and sequences.needs_bump
    sequences.bump()
    assert (second.sequence, second.identity.epoch) == (0, 1)
