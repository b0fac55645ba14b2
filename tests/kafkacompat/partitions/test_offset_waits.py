"""Waits for offsets."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.partitions.offset_waits import OffsetWaits
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.kafkacompat.metadata.deferreds import has_fired, refusal


def test_waits_end_in_order_when_their_offset_is_reached() -> None:
    waits, ended = OffsetWaits(), list[int]()
    for end_offset in (3, 5, 5, 8):
        waits.add(end_offset).addCallback(lambda _, reached: ended.append(reached), end_offset)
    waits.release(2)
    assert ended == []
    waits.release(5)
    assert ended == [3, 5, 5]
    assert len(waits) == 1


def test_a_wait_for_an_earlier_offset_gets_before_the_others() -> None:
    waits = OffsetWaits()
    late, early = waits.add(8), waits.add(4)
    waits.release(4)
    assert (has_fired(early), has_fired(late)) == (True, False)


def test_a_wait_given_up_is_dropped_at_the_front() -> None:
    waits = OffsetWaits()
    for end_offset in (1, 2, 3):
        waits.add(end_offset).callback(None)
    waits.add(4)
    assert len(waits) == 1
    waits.release(9)
    assert len(waits) == 0


def test_a_wait_given_up_is_not_fired_again() -> None:
    waits = OffsetWaits()
    given_up, other = waits.add(1), waits.add(1)
    given_up.callback(None)
    waits.release(1)
    assert has_fired(other)


@pytest.mark.parametrize("give_up_first", [True, False])
def test_a_refusal_fails_all(give_up_first: bool) -> None:
    waits = OffsetWaits()
    first, second = waits.add(1), waits.add(2)
    if give_up_first:
        first.callback(None)
    waits.refuse(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert refusal(second) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not give_up_first:
        assert refusal(first) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(waits) == 0


def test_a_callback_may_wait_again() -> None:
    waits = OffsetWaits()
    again: list[Deferred[None]] = []
    waits.add(1).addCallback(lambda _: again.append(waits.add(1)))
    waits.release(1)
    assert has_fired(again[0])
