"""Every check finds what it is there for, and says nothing of what is sound."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafkacompat.history.checks import CHECKS, MAX_FINDINGS_KEPT, judge_history
from kafkacompat.history.counts import count_events, list_gaps
from kafkacompat.history.events import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Acknowledged,
    CommitAcknowledged,
    Ended,
    Event,
    Finished,
    HistoryError,
    HistoryPartition,
    Positioned,
    Read,
    Restarted,
    Send,
)
from tests.kafkacompat.history.anomalies import ANOMALIES, NothingToSpoilError, Spoiling, is_last
from tests.kafkacompat.history.simulation import sound_history

SEEDS = st.integers(0, 2**32)


def list_findings(events: list[Event]) -> dict[str, list[str]]:
    """Return the first findings by the names of the checks."""
    return {verdict.check.name: verdict.first for verdict in judge_history(events)[1] if verdict.finding_count}


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_nothing_is_found_in_what_is_sound(seed: int) -> None:
    assert list_findings(sound_history(seed)) == {}


def test_sound_histories_have_something_of_everything() -> None:
    total: dict[str, int] = {}
    for seed in range(5):
        for name, count in count_events(judge_history(sound_history(seed))[0]).items():
            total[name] = total.get(name, 0) + count
    assert all(count > 10 for count in total.values()), total


def test_there_is_an_anomaly_for_every_check() -> None:
    assert {name for name, _ in ANOMALIES} == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "spoil"), ANOMALIES, ids=[spoil.__name__ for _, spoil in ANOMALIES])
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_what_is_planted_is_found(name: str, spoil: Callable[[Spoiling], None], seed: int) -> None:
    spoiling = Spoiling(sound_history(seed), Random(seed))
    try:
        spoil(spoiling)
    except NothingToSpoilError:
        assume(False)
    assert name in list_findings(spoiling.events)


def test_all_findings_are_counted_and_the_first_are_told() -> None:
    place = HistoryPartition("t", 0)
    events: list[Event] = []
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        events.append(Positioned(1, isolation, place, 0))
        events.append(Read(2, isolation, isolation, place, [(offset, f"x:{offset}") for offset in range(50)]))
        events.append(Finished(3, isolation, isolation, place, 50, 50))
    _, verdicts = judge_history(events)
    (verdict,) = (verdict for verdict in verdicts if verdict.finding_count)
    assert (verdict.check.name, verdict.finding_count, len(verdict.first)) == ("unknown", 100, MAX_FINDINGS_KEPT)


def test_a_history_without_its_end_is_refused() -> None:
    events = [event for event in sound_history(1) if not isinstance(event, Finished)]
    with pytest.raises(HistoryError, match="no reader read copies-0 to the end"):
        judge_history(events)


def test_an_answer_without_a_question_is_refused() -> None:
    with pytest.raises(HistoryError, match="is the result of no request"):
        judge_history([event for event in sound_history(1) if not isinstance(event, Send)])


def told_that_is_missing(events: list[Event]) -> list[str]:
    """Why the events would say nothing."""
    return list(list_gaps(judge_history(events)[0]))


def test_nothing_is_missing_where_clients_were_at_work() -> None:
    assert told_that_is_missing(sound_history(1)) == []


@pytest.mark.parametrize(
    ("is_left_out", "why"),
    [
        (lambda event: isinstance(event, Acknowledged), "nothing was acknowledged"),
        (
            lambda event: isinstance(event, Read) and not is_last(event.client),
            "nothing was read while clients were at work",
        ),
        (lambda event: isinstance(event, Ended), "no transaction was committed"),
        (lambda event: isinstance(event, Ended), "group copiers committed nothing"),
        (lambda event: isinstance(event, CommitAcknowledged), "group members committed nothing"),
    ],
)
def test_what_never_came_about_is_told(is_left_out: Callable[[Event], bool], why: str) -> None:
    assert why in told_that_is_missing([event for event in sound_history(1) if not is_left_out(event)])


def test_kills_of_a_broker_with_nobody_at_work_are_told() -> None:
    events = [event for event in sound_history(1) if not isinstance(event, Restarted)]
    idle = Restarted(events[-1].time_ns + 1, "run.0", 0)
    assert told_that_is_missing([*events, idle]) == ["the broker was killed only while nothing was acknowledged"]
    at_work = idle._replace(killed_ns=idle.time_ns)
    assert told_that_is_missing([*events, at_work]) == []
    assert (
        count_events(judge_history([*events, at_work, at_work])[0])["broker killed after it acknowledged values"] == 1
    )
