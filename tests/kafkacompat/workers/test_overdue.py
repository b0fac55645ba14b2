"""How long a process may owe an answer."""

from __future__ import annotations

from twisted.internet.task import Clock

from kafkacompat.workers.overdue import Overdue

TIMEOUT_S = 300


class Process:
    def __init__(self) -> None:
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1


def test_who_owes_an_answer_for_too_long_is_ended_once() -> None:
    clock = Clock()
    overdue = Overdue(clock, TIMEOUT_S)
    overdue.work_begins()
    clock.advance(100)
    process = Process()
    with overdue.owed_by(process):
        clock.advance(TIMEOUT_S - 1)
        assert process.given_up == 0
        clock.advance(1)
        assert process.given_up == 1
    for _ in range(10):
        clock.advance(TIMEOUT_S)
    assert process.given_up == 1


def test_each_answer_has_the_time_for_itself() -> None:
    clock = Clock()
    overdue = Overdue(clock, TIMEOUT_S)
    overdue.work_begins()
    quick, slow = Process(), Process()
    for _ in range(5):
        with overdue.owed_by(quick):
            clock.advance(TIMEOUT_S - 1)
    with overdue.owed_by(slow):
        clock.advance(TIMEOUT_S / 2)
        with overdue.owed_by(quick):
            clock.advance(TIMEOUT_S / 2)
            assert (slow.given_up, quick.given_up) == (1, 0)


def test_nobody_looks_at_the_clock_when_there_is_no_work() -> None:
    clock = Clock()
    overdue = Overdue(clock, TIMEOUT_S)
    for _ in range(2):
        overdue.work_begins()
    overdue.work_ended()
    assert len(clock.getDelayedCalls()) == 1
    overdue.work_ended()
    assert clock.getDelayedCalls() == []
    overdue.work_begins()
    overdue.stop()
    overdue.work_ended()
    assert clock.getDelayedCalls() == []


def test_without_a_timeout_nothing_is_ended() -> None:
    clock = Clock()
    overdue = Overdue(clock, None)
    overdue.work_begins()
    assert clock.getDelayedCalls() == []
