"""The state of a transactional id after each request."""

from __future__ import annotations

import pytest

from kafkacompat.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    EndEffect,
    Ending,
)
from kafkacompat.transactions.transaction import LAST_EPOCH, MAX_EPOCH, ProducerIdentity, TransactionMetadata
from kafkacompat.wire.errors import ErrorCode, KafkaError

FRESH = TransactionMetadata(7, -1, 1000)
LIVING = TransactionMetadata(7, 3, 1000, EMPTY, last_update_ms=1, previous_producer_id=7)
OPEN = LIVING.with_partitions([("t", 0)], 0, 50)
EXHAUSTED = LIVING._replace(producer_epoch=LAST_EPOCH)


def initialize_producer(
    old: TransactionMetadata, expected: ProducerIdentity | None = None, new_producer_id: int | None = None
) -> TransactionMetadata:
    return old.as_initialized(2000, expected, new_producer_id, 99)


def test_a_new_transactional_id_begins_with_epoch_0() -> None:
    new = initialize_producer(FRESH)
    assert new == TransactionMetadata(7, 0, 2000, EMPTY, last_update_ms=99, previous_producer_id=7)
    assert initialize_producer(FRESH, ProducerIdentity(5, 9)).producer == (7, 0)


def test_every_further_one_gets_the_next_epoch() -> None:
    assert initialize_producer(LIVING).producer == (7, 4)
    assert initialize_producer(LIVING).last_producer_epoch == -1


def test_a_producer_with_its_identity_may_repeat_the_request() -> None:
    bumped = initialize_producer(LIVING, ProducerIdentity(7, 3))
    assert (bumped.producer, bumped.last_producer_epoch) == ((7, 4), 3)
    assert initialize_producer(bumped, ProducerIdentity(7, 3)).producer == (7, 4)
    assert initialize_producer(bumped, ProducerIdentity(7, 4)).producer == (7, 5)


@pytest.mark.parametrize("epoch", [2, 5])
def test_a_producer_of_another_epoch_is_fenced(epoch: int) -> None:
    with pytest.raises(KafkaError) as caught:
        initialize_producer(LIVING, ProducerIdentity(7, epoch))
    assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_known_identities_may_initialize() -> None:
    assert LIVING.may_initialize(None)
    assert LIVING.may_initialize(ProducerIdentity(7, 0))
    assert FRESH.may_initialize(ProducerIdentity(5, 0))
    assert not LIVING.may_initialize(ProducerIdentity(5, 3))
    rotated = initialize_producer(EXHAUSTED, ProducerIdentity(7, LAST_EPOCH), 8)
    assert rotated.may_initialize(ProducerIdentity(7, LAST_EPOCH))
    assert not rotated.may_initialize(ProducerIdentity(7, LAST_EPOCH - 1))


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    assert EXHAUSTED.needs_producer_id(None)
    assert EXHAUSTED.needs_producer_id(ProducerIdentity(7, LAST_EPOCH))
    assert not EXHAUSTED.needs_producer_id(ProducerIdentity(7, 1))
    assert not EXHAUSTED._replace(producer_epoch=LAST_EPOCH - 1).needs_producer_id(None)
    new = initialize_producer(EXHAUSTED, None, 8)
    assert (new.producer, new.previous_producer_id, new.last_producer_epoch) == ((8, 0), 7, -1)
    asked = initialize_producer(EXHAUSTED, ProducerIdentity(7, LAST_EPOCH), 8)
    assert (asked.producer, asked.last_producer_epoch) == ((8, 0), LAST_EPOCH)
    # The response was lost.
    assert initialize_producer(asked, ProducerIdentity(7, LAST_EPOCH)).producer == (8, 0)


def test_a_transaction_begins_with_its_first_partition() -> None:
    assert (OPEN.state, OPEN.start_ms, OPEN.last_update_ms) == (ONGOING, 50, 50)
    more = OPEN.with_partitions([("t", 0), ("u", 1)], 2, 60)
    assert (sorted(more.partitions), more.start_ms, more.last_update_ms) == ([("t", 0), ("u", 1)], 50, 60)
    assert more.client_version == 2
    again = OPEN.as_prepared(Ending.COMMIT, 0, None, 70).as_completed(80).with_partitions([("v", 0)], 0, 90)
    assert (list(again.partitions), again.start_ms) == ([("v", 0)], 90)


def test_without_own_epochs_a_transaction_ends_in_the_epoch_it_was_written_in() -> None:
    prepared = OPEN.as_prepared(Ending.COMMIT, 0, None, 70)
    assert (prepared.state, prepared.producer) == (PREPARE_COMMIT, (7, 3))
    assert prepared.partitions == OPEN.partitions
    done = prepared.as_completed(80)
    assert (done.state, done.producer, done.partitions) == (COMPLETE_COMMIT, (7, 3), frozenset())
    assert (done.start_ms, done.last_update_ms) == (50, 80)


def test_with_own_epochs_it_ends_in_the_next_one() -> None:
    prepared = OPEN.as_prepared(Ending.ABORT, 2, None, 70)
    assert (prepared.state, prepared.producer, prepared.last_producer_epoch) == (PREPARE_ABORT, (7, 4), 3)
    done = prepared.as_completed(80)
    assert (done.state, done.producer, done.client_version) == (COMPLETE_ABORT, (7, 4), 2)


def test_the_last_epoch_is_followed_by_the_first_of_another_producer_id() -> None:
    prepared = OPEN._replace(producer_epoch=LAST_EPOCH).as_prepared(Ending.COMMIT, 2, 8, 70)
    assert (prepared.producer, prepared.next_producer_id) == ((7, MAX_EPOCH), 8)
    done = prepared.as_completed(80)
    assert (done.producer, done.previous_producer_id, done.next_producer_id) == ((8, 0), 7, -1)
    assert done.last_producer_epoch == LAST_EPOCH
    assert done.is_repeat(ProducerIdentity(7, LAST_EPOCH))
    assert not done.is_repeat(ProducerIdentity(7, LAST_EPOCH - 1))
    assert not done.is_repeat(ProducerIdentity(6, LAST_EPOCH))


def test_an_epoch_that_should_never_have_been_can_be_left_by_aborting() -> None:
    prepared = OPEN._replace(producer_epoch=MAX_EPOCH).as_prepared(Ending.ABORT, 2, 8, 70)
    assert prepared.producer_epoch == MAX_EPOCH
    assert prepared.as_completed(80).producer == (8, 0)


def test_an_abort_of_nothing_has_begun_now() -> None:
    prepared = LIVING.as_prepared(Ending.ABORT, 2, None, 70)
    assert (prepared.state, prepared.start_ms, prepared.partitions) == (PREPARE_ABORT, 70, frozenset())


def test_a_fence_is_an_abort_in_the_next_epoch() -> None:
    assert OPEN.as_fenced(2, None, 70) == OPEN.as_prepared(Ending.ABORT, 2, None, 70)
    old = OPEN.as_fenced(0, None, 70)
    assert (old.state, old.producer, old.last_producer_epoch) == (PREPARE_ABORT, (7, 4), -1)
    assert old.client_version == 0
    assert OPEN._replace(producer_epoch=MAX_EPOCH).as_fenced(0, None, 70).producer_epoch == MAX_EPOCH


@pytest.mark.parametrize("version", [0, 2])
def test_whose_end_is_heard(version: int) -> None:
    assert OPEN.judge_end(ProducerIdentity(7, 3), Ending.COMMIT, version, is_busy=False) is EndEffect.PREPARE
    for producer, code in [
        (ProducerIdentity(6, 3), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerIdentity(7, 2), ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(7, 4), ErrorCode.PRODUCER_FENCED),
    ]:
        assert OPEN.judge_end(producer, Ending.COMMIT, version, is_busy=False) is code
        while_busy = OPEN.judge_end(producer, Ending.COMMIT, version, is_busy=True)
        assert while_busy is (code if version == 0 else ErrorCode.CONCURRENT_TRANSACTIONS)
    assert (
        OPEN.judge_end(ProducerIdentity(7, 3), Ending.COMMIT, version, is_busy=True)
        is ErrorCode.CONCURRENT_TRANSACTIONS
    )


def test_a_repeat_is_known_by_its_old_epoch() -> None:
    done = OPEN.as_prepared(Ending.COMMIT, 2, None, 70).as_completed(80)
    assert done.judge_end(ProducerIdentity(7, 3), Ending.COMMIT, 2, is_busy=False) is EndEffect.ANSWER
    assert done.judge_end(ProducerIdentity(7, 3), Ending.ABORT, 2, is_busy=False) is EndEffect.REFUSE
    assert done.judge_end(ProducerIdentity(7, 3), Ending.COMMIT, 0, is_busy=False) is ErrorCode.PRODUCER_FENCED
    begun = done.with_partitions([("t", 0)], 2, 90)
    assert begun.judge_end(ProducerIdentity(7, 3), Ending.COMMIT, 2, is_busy=False) is ErrorCode.PRODUCER_FENCED
    lost = OPEN._replace(producer_epoch=LAST_EPOCH).as_prepared(Ending.COMMIT, 2, 8, 70).as_completed(80)
    assert lost.judge_end(ProducerIdentity(7, LAST_EPOCH), Ending.COMMIT, 2, is_busy=False) is EndEffect.ANSWER


def test_an_illegal_transition_is_a_defect() -> None:
    with pytest.raises(ValueError, match="Empty cannot become PrepareCommit"):
        LIVING.as_prepared(Ending.COMMIT, 0, None, 70)
