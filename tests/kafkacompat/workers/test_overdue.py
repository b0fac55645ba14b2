"""How long a process may owe an answer."""

from __future__ import annotations

from twisted.internet.task import Clock

from kafkacompat.workers.overdue import AnswerTimeouts

TIMEOUT_S = 300


class Process:
    def __init__(self) -> None:
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1


def test_an_overdue_process_is_killed_once() -> None:
    clock = Clock()
    overdue = AnswerTimeouts(clock, TIMEOUT_S)
    overdue.begin_work()
    clock.advance(100)
    process = Process()
    with overdue.expect_answer(process):
        clock.advance(TIMEOUT_S - 1)
        assert process.given_up == 0
        clock.advance(1)
        assert process.given_up == 1
    for _ in range(10):
        clock.advance(TIMEOUT_S)
    assert process.given_up == 1


def test_each_answer_has_the_time_for_itself() -> None:
    clock = Clock()
    overdue = AnswerTimeouts(clock, TIMEOUT_S)
    overdue.begin_work()
    quick, slow = Process(), Process()
    for _ in range(5):
        with overdue.expect_answer(quick):
            clock.advance(TIMEOUT_S - 1)
    with overdue.expect_answer(slow):
        clock.advance(TIMEOUT_S / 2)
        with overdue.expect_answer(quick):
            clock.advance(TIMEOUT_S / 2)
            assert (slow.given_up, quick.given_up) == (1, 0)


def test_without_work_there_is_no_timer() -> None:
    clock = Clock()
    overdue = AnswerTimeouts(clock, TIMEOUT_S)
    for _ in range(2):
        overdue.begin_work()
    overdue.end_work()
    assert len(clock.getDelayedCalls()) == 1
    overdue.end_work()
    assert clock.getDelayedCalls() == []
    overdue.begin_work()
    overdue.stop()
    overdue.end_work()
    assert clock.getDelayedCalls() == []


def test_without_a_timeout_nothing_is_ended() -> None:
    clock = Clock()
    overdue = AnswerTimeouts(clock, None)
    overdue.begin_work()
    assert clock.getDelayedCalls() == []
