"""Producer ids out of blocks."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kafkacompat.metadata.producer_ids import ProducerIds
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import outcome, refusal


def test_waiting_requests_share_one_allocation_in_order() -> None:
    blocks: list[Deferred[range]] = []
    ids = ProducerIds(lambda: blocks.append(Deferred()) or blocks[-1])  # type: ignore[func-returns-value]
    waiting = [ids.next() for _ in range(5)]
    assert len(blocks) == 1
    blocks[0].callback(range(3))
    assert [outcome(waiter) for waiter in waiting[:3]] == [0, 1, 2]
    assert len(blocks) == 2
    late = ids.next()
    blocks[1].callback(range(10, 20))
    assert [outcome(waiter) for waiter in [*waiting[3:], late, ids.next()]] == [10, 11, 12, 13]


def test_a_failed_allocation_fails_waiting_requests_and_is_retried() -> None:
    blocks: list[Deferred[range]] = []
    ids = ProducerIds(lambda: blocks.append(Deferred()) or blocks[-1])  # type: ignore[func-returns-value]
    waiting = [ids.next(), ids.next()]
    blocks[0].errback(OSError("no"))
    for waiter in waiting:
        with pytest.raises(OSError):
            outcome(waiter)
    again = ids.next()
    blocks[1].callback(range(7, 8))
    assert outcome(again) == 7


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_producers_try_again_while_the_controller_is_away(problem: ErrorCode, code: ErrorCode) -> None:
    answers: list[Deferred[range]] = [fail(KafkaError(problem)), succeed(range(5, 6))]
    ids = ProducerIds(lambda: answers.pop(0))
    assert refusal(ids.next()) is code
    assert outcome(ids.next()) == 5
