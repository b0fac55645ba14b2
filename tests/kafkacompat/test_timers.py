"""Many things at a time: a few of them in each turn of the reactor."""

from __future__ import annotations

from operator import itemgetter
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.timers import (
    IN_A_TURN,
    SORTED_IN_A_TURN,
    UNDER_WAY,
    make_steps,
    run_few_at_a_time,
    sort_in_turns,
    yield_in_turns,
    yield_unhurried,
)
from tests.fakes.busy_clock import LOOKS_A_TURN, BusyClock

TURN_S = 0.5


class SlowClock(Clock):
    """One on which a turn takes some time, so that each is made by itself."""

    def callLater(self, delay: float, callable: Any, *args: Any, **kwargs: Any) -> Any:
        return super().callLater(delay + TURN_S, callable, *args, **kwargs)


def test_other_work_has_a_turn_after_a_fixed_number_of_items() -> None:
    clock, seen, turns = SlowClock(), list[int](), 0

    async def go_through() -> None:
        async for item in yield_unhurried(clock, range(10 * IN_A_TURN)):
            seen.append(item)

    going = Deferred.fromCoroutine(go_through())
    while not going.called:
        turns += 1
        assert len(seen) == turns * IN_A_TURN
        clock.advance(TURN_S)
    assert turns == 10
    assert seen == list(range(10 * IN_A_TURN))


def test_long_works_take_turns_one_a_turn() -> None:
    clock, seen = BusyClock(), list[str]()

    async def go(name: str) -> None:
        async for _ in yield_in_turns(clock, range(3 * LOOKS_A_TURN)):
            seen.append(name)

    both = [Deferred.fromCoroutine(go(name)) for name in "ab"]
    assert "".join(seen) == LOOKS_A_TURN * "a" + LOOKS_A_TURN * "b"
    for name in "abab":
        seen.clear()
        assert not all(task.called for task in both)
        assert clock.turn()
        assert "".join(seen) == LOOKS_A_TURN * name
    clock.turns()
    assert all(task.called for task in both)


@pytest.mark.parametrize("count", [0, 1, SORTED_IN_A_TURN, 3 * SORTED_IN_A_TURN + 1])
def test_items_are_sorted_in_turns(count: int) -> None:
    clock, rng = SlowClock(), Random(count)
    items = [(rng.randrange(10), number) for number in range(count)]
    sorting = Deferred.fromCoroutine(sort_in_turns(clock, items, itemgetter(0)))
    turns = 0
    while not sorting.called:
        turns += 1
        clock.advance(TURN_S)
    assert turns == max(0, -(-count // SORTED_IN_A_TURN) - 1)
    sorted_items: Any = sorting.result
    assert sorted_items == sorted(items, key=itemgetter(0))


def test_steps_that_take_long_are_made_in_later_turns() -> None:
    clock, made = BusyClock(), list[int]()
    steps = map(made.append, range(LOOKS_A_TURN + 1))
    going = make_steps(clock, steps)
    assert going is not None and not going.called
    assert len(made) == LOOKS_A_TURN
    clock.turns()
    assert going.called
    assert len(made) == LOOKS_A_TURN + 1
    assert make_steps(clock, iter([1])) is None


def test_the_next_begins_when_one_has_ended() -> None:
    under_way: dict[int, Deferred[None]] = {}

    def begin(item: int) -> Deferred[None]:
        under_way[item] = Deferred()
        return under_way[item]

    doing = run_few_at_a_time(begin, range(3 * UNDER_WAY))
    for item in range(3 * UNDER_WAY):
        assert not doing.called
        assert len(under_way) == min(UNDER_WAY, 3 * UNDER_WAY - item)
        under_way.pop(item).callback(None)
    assert doing.called


def test_one_that_fails_leaves_the_others_alone() -> None:
    done: list[int] = []

    def begin(item: int) -> Deferred[None]:
        if item % 2:
            raise ValueError(item)
        done.append(item)
        ended: Deferred[None] = Deferred()
        ended.callback(None)
        return ended

    failed: list[Failure] = []
    run_few_at_a_time(begin, range(6 * UNDER_WAY)).addErrback(failed.append)
    assert done == list(range(0, 6 * UNDER_WAY, 2))
    with pytest.raises(ValueError, match="1"):
        failed[0].raiseException()


def test_of_nothing_there_is_nothing_to_wait_for() -> None:
    assert run_few_at_a_time(lambda _: Deferred(), []).called
