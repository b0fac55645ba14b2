"""The meaning of a rollup's options, and the rejected ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_integration.errors import PipelineError
from spark_integration.rollup.durations import WindowLengths, parse_duration_ms, parse_windows
from spark_integration.rollup.events import FIRST_MS, LAST_MS
from spark_integration.rollup.measures import Measure, parse_measures
from spark_integration.rollup.paths import check_paths, column_name, parse_path
from spark_integration.rollup.pipeline import _format_time
from spark_integration.rollup.schema import schema_of_paths
from spark_integration.rollup.settings import RollupSettings

FITTING = RollupSettings(topic="results", path="table", window="1 minute", watermark="5 minutes")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1 minute", 60_000),
        ("5 minutes", 300_000),
        ("1 hour 30 minutes", 5_400_000),
        ("250 milliseconds", 250),
        ("2 weeks", 1_209_600_000),
        ("0 seconds", 0),
    ],
)
def test_lengths_of_time(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text, "window") == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", "5", "minutes", "1 month", "-5 minutes", "5 minutes or so", "1.5 hours", "5minutes", "1 hour30 minutes"],
)
def test_a_bad_duration_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match=r"--retention .* is no length of time"):
        parse_duration_ms(text, "retention")


def test_windows() -> None:
    assert parse_windows("1 minute", None) == WindowLengths(60_000, 60_000)
    assert not parse_windows("1 minute", None).overlaps
    assert parse_windows("10 minutes", "4 minutes") == WindowLengths(600_000, 240_000)
    assert parse_windows("10 minutes", "4 minutes").overlaps


@pytest.mark.parametrize(
    ("window", "slide"), [("0 seconds", None), ("1 minute", "0 seconds"), ("1 minute", "2 minutes")]
)
def test_a_bad_window_is_refused(window: str, slide: str | None) -> None:
    with pytest.raises(PipelineError, match="--slide"):
        parse_windows(window, slide)


def test_measures() -> None:
    assert parse_measures("sum(amount),count , max( user.age ) as oldest,count(a.b)") == [
        Measure("sum_amount", "sum", ("amount",)),
        Measure("count", "count", None),
        Measure("oldest", "max", ("user", "age")),
        Measure("count_a_b", "count", ("a", "b")),
    ]


@pytest.mark.parametrize(
    "text", ["median(x)", "sum(a)+1", "", "count,", "sum(count(x))", "max(x) as a b", "collect_list(x)"]
)
def test_a_bad_measure_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="is no measure: take count, sum,"):
        parse_measures(text)


def test_a_measure_of_nothing() -> None:
    with pytest.raises(PipelineError, match=r"'sum' does not name its field: write sum\(FIELD\)"):
        parse_measures("sum")


def test_paths() -> None:
    assert parse_path("amount") == ("amount",)
    assert parse_path(" $.user.first name ") == ("user", "first name")
    assert column_name(("user", "first name")) == "user_first_name"


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "$", "a[0]", "$..a", "a.*"])
def test_a_bad_path_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="is no path"):
        parse_path(text)


def test_the_schema_has_only_requested_paths() -> None:
    schema = schema_of_paths([("b", "d"), ("a",), ("b", "c", "e"), ("a",)])
    assert schema.simpleString() == "struct<a:string,b:struct<c:struct<e:string>,d:string>,_corrupt_record:string>"


def test_a_path_and_a_path_within_it_are_refused() -> None:
    with pytest.raises(PipelineError, match=r"user is used as a value, and user\.id within it"):
        check_paths([("user", "id"), ("user",)])


def test_columns() -> None:
    rollup = replace(
        FITTING, time_field="at", dimensions="place.country, kind", measures="count,sum(amount)", slide=None
    )
    rollup.check()
    assert rollup.key_columns == ["window_start", "place_country", "kind"]
    assert rollup.value_columns == ["window_start", "window_end", "place_country", "kind", "count", "sum_amount"]
    assert set(rollup.paths) == {("at",), ("place", "country"), ("kind",), ("amount",)}


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (LAST_MS + 1, "9999-12-31T23:59:59.999Z"),
        (FIRST_MS - 1, "0001-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_formatted_with_years_of_four_digits(milliseconds: int | None, text: str | None) -> None:
    assert _format_time(milliseconds) == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "update"}, "which Parquet cannot"),
        ({"mode": "complete"}, "--mode is one of append, update"),
        ({"format": "csv"}, "--format one of parquet, delta"),
        ({"measures": "count,count"}, "two columns would be called count"),
        ({"dimensions": "Count"}, "two columns would be called count"),
        ({"dimensions": "date"}, "two columns would be called date"),
        ({"dimensions": "a.b,a_b"}, "two columns would be called a_b"),
        ({"watermark": "soon"}, "--watermark 'soon' is no length of time"),
        ({"retention": "soon"}, "--retention 'soon' is no length of time"),
        ({"time_field": "a[1]"}, "is no path"),
        ({"partitions": 0}, "--partitions 0 is no number"),
        ({"dimensions": "user", "measures": "max(user.age)"}, "user is used as a value, and user.age within it"),
        ({"window": "5minutes"}, "--window '5minutes' is no length of time"),
        ({"dimensions": "window"}, "two columns would be called window"),
        ({"measures": "count as window"}, "two columns would be called window"),
        ({"topic": "a/b"}, "'a/b' is no topic's name"),
        ({"dead_topic": ".."}, "'..' is no topic's name"),
    ],
)
def test_refused_before_anything_is_asked(options: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        replace(FITTING, **options).check()  # type: ignore[arg-type]
