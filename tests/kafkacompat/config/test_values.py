"""Types, rules and text forms of property values."""

from __future__ import annotations

import pytest

from kafkacompat.config.properties import ConfigError, Property
from kafkacompat.config.values import Value, format_value, parse_value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", " TRUE ", True),
        ("boolean", "false", False),
        ("int", "+7", 7),
        ("int", "-2147483648", -(2**31)),
        ("short", "32767", 32767),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "0.5", 0.5),
        ("double", ".5e1d", 5.0),
        ("double", "Infinity", float("inf")),
        ("string", "  a b  ", "a b"),
        ("list", "", ()),
        ("list", "a , b,c", ("a", "b", "c")),
        ("list", "a,,b", ("a", "", "b")),
    ],
)
def test_reads_values(kind: str, text: str, value: Value) -> None:
    assert parse_value(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("boolean", "yes"),
        ("int", ""),
        ("int", "1.0"),
        ("int", "1_000"),
        ("int", "2147483648"),
        ("int", "9" * 5000),
        ("short", "40000"),
        ("long", "9223372036854775808"),
        ("double", "half"),
        ("double", ""),
    ],
)
def test_a_bad_value_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError):
        parse_value(kind, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (7, "7"),
        ("text", "text"),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (0.0009999, "9.999E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-12345678.9, "-1.23456789E7"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_writes_values_as_kafka_shows_them(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("kind", "allowed", "good", "bad", "words"),
    [
        ("int", "1..", ["1", "5"], ["0", "-1", "x"], "a whole number of 1 or more"),
        ("int", "1..17", ["1", "17"], ["0", "18"], "a whole number from 1 to 17"),
        ("int", "-131072..22", ["-131072", "22"], ["-131073", "23"], "a whole number from -131072 to 22"),
        ("int", "1..9 or -1", ["-1", "9"], ["0", "10"], "a whole number from 1 to 9, or -1"),
        ("double", "0..0.5", ["0", "0.5"], ["0.6", "NaN"], "a number from 0 to 0.5"),
        ("string", "a, b", ["a", "b"], ["A", "c", ""], "one of a, b"),
        ("string", "any case: AB, CD", ["ab", "Cd"], ["x"], "one of AB, CD"),
        ("string", "not empty", ["x"], [""], "text that is not empty"),
        ("list", "any of: a, b", ["", "a", "b,a"], ["c", "a,"], "a list of a, b"),
        ("list", "some of: a, b", ["a", "b,a"], ["", "c"], "a list of one or more of a, b"),
        ("list", "distinct", ["", "x,y"], ["x,,y"], "a list without empty elements"),
        ("list", "distinct, some", ["x"], ["", "x,"], "a list of one or more, without empty elements"),
        ("list", "replicas", ["", "*", "0:1,2:3"], ["0", "*,0:1"], "a list of partition:broker, or *"),
        ("list", "voters", ["", "1@localhost:9093,2@[::1]:9"], ["localhost:9093", "1@x"], "a list of id@host:port"),
        ("list", "servers", ["a:1"], ["a"], "a list of host:port"),
        (
            "string",
            "reset",
            ["latest", "earliest", "by_duration:P1DT2H3M4.5S"],
            ["Latest", "by_duration:P"],
            "latest, earliest or by_duration",
        ),
    ],
)
def test_rules(kind: str, allowed: str, good: list[str], bad: list[str], words: str) -> None:
    row = Property("some.name", kind, None, allowed, "", "")
    for text in good:
        row.parse(text)
    for text in bad:
        with pytest.raises(ConfigError) as refusal:
            row.parse(text)
        assert str(refusal.value).startswith(f"some.name={text} is not valid: it takes {words}")


def test_a_secret_is_not_shown_in_an_error() -> None:
    row = Property("ssl.key.password", "password", None, "not empty", "", "")
    assert "hunter2" not in str(row.error("hunter2"))


def test_a_long_value_is_shortened_in_an_error() -> None:
    with pytest.raises(ConfigError) as refusal:
        Property("num.partitions", "int", "1", "1..", "", "").parse("9" * 1_000_000)
    assert len(str(refusal.value)) < 300
