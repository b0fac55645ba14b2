"""Full collections of garbage: not while somebody is at work."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock

from kafkacompat.cli.garbage import CHECK_EVERY_S, MAX_PUT_OFF, FullCollections
from kafkacompat.timers import next_turn


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The full collections that were made; ten of the middle generation are made between any two looks."""
    made: list[int] = []
    before = gc.get_threshold()
    monkeypatch.setattr(gc, "collect", lambda: made.append(len(made)))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 10))
    yield made
    gc.set_threshold(*before)


def test_python_makes_none_and_a_quiet_moment_one(full: list[int]) -> None:
    clock = Clock()
    young, middle, _ = gc.get_threshold()
    FullCollections(clock).start()
    assert gc.get_threshold()[:2] == (young, middle)
    assert gc.get_threshold()[2] > 1_000_000
    assert len(full) == 1
    clock.advance(CHECK_EVERY_S)
    assert len(full) == 2


def test_a_collection_is_postponed_while_the_broker_is_busy_but_not_for_ever(full: list[int]) -> None:
    clock = Clock()
    collections = FullCollections(clock)
    next_turn(clock)
    for _ in range(MAX_PUT_OFF):
        collections.collect_if_due()
    assert full == []
    collections.collect_if_due()
    assert len(full) == 1


def test_no_collection_runs_below_the_thresholds(full: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 9))
    FullCollections(Clock()).collect_if_due()
    assert full == []


def test_where_much_is_there_it_is_made_when_a_quarter_is_new(full: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    young, middle, due = gc.get_threshold()
    monkeypatch.setattr(gc, "get_objects", lambda generation: [None] * (4 * young * middle * due * 2))
    collections = FullCollections(Clock())
    for _ in range(2):
        collections.collect_if_due()
    assert len(full) == 1
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 2 * due))
    collections.collect_if_due()
    assert len(full) == 2
