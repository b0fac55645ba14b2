"""The pipeline `rollup`, against the same windows computed in plain Python."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.spark.rollup_case import Case, with_options
from compat_tests.spark.rollups import (
    MINUTE_MS,
    START_MS,
    Model,
    format_time,
    make_event,
    random_events,
    read_last_values,
    read_messages,
    read_table,
)
from compat_tests.spark.scene import produce_values
from spark_integration.rollup.events import LAST_MS


@pytest.fixture
def case(spark: Any, broker: Broker, name: str, tmp_path: Path, more_options: dict[str, Any]) -> Case:
    return Case(spark, broker, name, tmp_path, **more_options)


@pytest.fixture
def more_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of one test beside those of all (by `with_options`)."""
    return dict(getattr(request, "param", {}))


def test_windows_that_are_over(case: Case) -> None:
    """The last windows are still open, and are written by a later run."""
    done = case.run([*random_events(random.Random(1), 200, 20), make_event(20)])
    assert case.results() == case.model.results(closed=True)
    assert (done.rows, done.late_rows, done.dead_rows) == (201, 0, 0)
    assert done.watermark == "2026-01-01T10:15:00.000Z"


@pytest.mark.spark
def test_late_events_below_and_above_the_watermark(case: Case) -> None:
    case.run([*random_events(random.Random(2), 50, 20), make_event(20)])
    # The watermark is 10:15: a window that ends there is over, the next one is not.
    second = case.run(
        [
            make_event(14.99),
            make_event(14.5, "fr"),
            make_event(14.5, "fr"),
            make_event(15),
            make_event(16),
            make_event(30),
        ]
    )
    assert second.late_rows == case.model.late == 3
    assert case.results() == case.model.results(closed=True)
    third = case.run([make_event(40)])
    assert (third.late_rows, third.rows) == (0, 1)
    assert case.results() == case.model.results(closed=True)
    assert case.results()["2026-01-01T10:15:00.000Z", "de"]["count"] >= 1


@pytest.mark.spark
def test_late_events_of_batches_without_a_pause_between_them(case: Case) -> None:
    """A row is late by the watermark of the batch before its own; every row is either counted or late."""
    case.run([*random_events(random.Random(3), 300, 60), make_event(60)], maxOffsetsPerTrigger="20")
    done = case.run([make_event(90)])
    counted = sum(result["count"] for result in case.results().values())
    late = 302 - 1 - counted  # the last event's window is open
    assert late > 20
    assert done.late_rows == 0
    assert case.account()["late_rows"] == late


@pytest.mark.spark
@with_options(window="10 minutes", slide="4 minutes")
def test_overlapping_windows(case: Case) -> None:
    case.model = Model(window_ms=10 * MINUTE_MS, slide_ms=4 * MINUTE_MS)
    case.run([*random_events(random.Random(4), 100, 40), make_event(40)])
    second = case.run([make_event(minutes) for minutes in range(20, 45)] + [make_event(80)])
    assert (second.late_rows, second.partly_late_rows) == (case.model.late, case.model.partly_late)
    assert case.model.late > 0
    assert case.model.partly_late > 0
    assert case.results() == case.model.results(closed=True)


@pytest.mark.spark
@with_options(time_field=None, dimensions="", measures="count")
def test_the_record_timestamp_and_no_dimensions(case: Case) -> None:
    for minutes in (0, 0.5, 3, 30):
        produce_values(case.broker, case.topic, {0: ["{}"]}, timestamp=START_MS + int(minutes * MINUTE_MS))
    case.run()
    last, _ = read_last_values(case.broker, case.settings.topic)
    assert {key: value["count"] for key, value in last.items()} == {
        (format_time(START_MS),): 2,
        (format_time(START_MS + 3 * MINUTE_MS),): 1,
    }


@pytest.mark.spark
@with_options(time_field=None, dimensions="", measures="count", retention="1 day", dead_topic="{topic}-dead")
def test_a_record_timestamp_that_is_no_year(case: Case) -> None:
    """It is a dead letter, like such a time in a value; else it would move the watermark there for ever."""
    case.topic = f"{case.topic}-of-any-time"
    create_topic(case.broker, case.topic, message_timestamp_after_max_ms=str(2**63 - 1))
    for timestamp in (START_MS, LAST_MS + 1, START_MS + 30 * MINUTE_MS):
        produce_values(case.broker, case.topic, {0: ["{}"]}, timestamp=timestamp)
    done = case.run()
    assert (done.rows, done.dead_rows, done.watermark) == (3, 1, "2026-01-01T10:25:00.000Z")
    (dead,) = read_messages(case.broker, case.settings.dead_topic or "")
    assert dict(dead.headers())["kafkacompat-dead-letter-reason"] == b"no-time"
    assert read_last_values(case.broker, case.settings.topic)[0][(format_time(START_MS),)]["count"] == 1


BROKEN = ["", "no JSON", "[1]", '{"time": "2026', "null", '"text"']
TIMELESS = [
    '{"time": null}',
    "{}",
    '{"time": "10:30"}',
    '{"time": "12345"  , "time2": 1}',
    '{"time": 1e30}',
    '{"time": {"a": 1}}',
    '{"time": "9999-12-31T23:59:59-12:00"}',
]


@pytest.mark.spark
def test_dead_letters(case: Case) -> None:
    """They are counted, and written to their topic unchanged, with the reason and their origin."""
    case.settings = replace(case.settings, dead_topic=f"{case.topic}-dead")
    case.run([make_event(0)])
    case.produce([*BROKEN, *TIMELESS[:3], *TIMELESS[4:]])
    done = case.run([make_event(1), make_event(30)])
    assert (done.rows, done.dead_rows) == (14, 12)
    assert case.results() == case.model.results(closed=True)
    letters = read_messages(case.broker, f"{case.topic}-dead")
    assert sorted(message.value().decode() for message in letters) == sorted([*BROKEN, *TIMELESS[:3], *TIMELESS[4:]])
    reasons = {
        message.value().decode(): dict(message.headers())["kafkacompat-dead-letter-reason"] for message in letters
    }
    assert reasons == dict.fromkeys(BROKEN, b"malformed") | dict.fromkeys(TIMELESS[:3] + TIMELESS[4:], b"no-time")
    original_values = {
        (original.partition(), original.offset()): original.value()
        for original in read_messages(case.broker, case.topic, 2)
    }
    for message in letters:
        headers = dict(message.headers())
        place = int(headers["kafkacompat-origin-partition"]), int(headers["kafkacompat-origin-offset"])
        assert original_values[place] == message.value()


@pytest.mark.spark
def test_milliseconds_are_a_time(case: Case) -> None:
    of_text = make_event(0.25)
    of_number = {**make_event(0.5), "time": START_MS + MINUTE_MS // 2}
    of_digits = {**make_event(0.75), "time": str(START_MS + MINUTE_MS * 3 // 4)}
    case.produce([json.dumps(event) for event in (of_text, of_number, of_digits)])
    case.run([make_event(20)])
    assert case.results()["2026-01-01T10:00:00.000Z", "de"]["count"] == 3


@pytest.mark.spark
@with_options(retention="30 minutes")
def test_retention(case: Case) -> None:
    """Old windows get tombstones once; those that were too old from the start are never written. Days leave the table."""
    case.run([*random_events(random.Random(5), 60, 20), make_event(20)])
    first = case.results()
    assert first == case.model.results(closed=True)
    second = case.run([make_event(60, "it"), make_event(70)])
    horizon_ms = START_MS + 35 * MINUTE_MS
    assert second.retained_from == format_time(horizon_ms)
    last, buried = read_last_values(case.broker, case.settings.topic)
    assert last == case.model.results(closed=True, from_ms=horizon_ms)
    assert buried == set(first)
    assert second.tombstones == len(first)
    assert case.run([make_event(71)]).tombstones == 0
    late_day = 26 * 60
    case.run([make_event(late_day), make_event(late_day + 10)])
    assert {key[0][:10] for key in read_table(case.folder / "table")} == {"2026-01-02"}


@pytest.mark.spark
@with_options(retention="30 minutes")
def test_windows_too_old_at_first_are_not_written(case: Case) -> None:
    case.run([*random_events(random.Random(6), 60, 20), make_event(60)])
    done = case.run([make_event(70)])
    assert done.tombstones == 0
    last, buried = read_last_values(case.broker, case.settings.topic)
    assert (
        last == read_table(case.folder / "table") == case.model.results(closed=True, from_ms=START_MS + 35 * MINUTE_MS)
    )
    assert not buried
