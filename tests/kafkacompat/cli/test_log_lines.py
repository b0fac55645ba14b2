from __future__ import annotations

import errno
import json
import logging
import os

import pytest

from kafkacompat.cli.log_lines import (
    ERRORS_PERIOD_S,
    FORMATTERS,
    MAX_ERRORS_A_PERIOD,
    MAX_MESSAGE_CHARACTERS,
    ErrorFlood,
    LineFormatter,
)


def format_line(message: str, *args: object, exc_info: BaseException | None = None) -> str:
    """Format one warning and return the text after the logger's name."""
    trace = (type(exc_info), exc_info, exc_info.__traceback__) if exc_info else None
    record = logging.LogRecord("test", logging.WARNING, __file__, 1, message, args, trace)
    return LineFormatter().format(record).partition(" WARNING test: ")[2]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x\n2026-01-01 ERROR forged", r"x\n2026-01-01 ERROR forged"),
        ("x\r\x1b[2Jy", r"x\r\x1b[2Jy"),
        ("x\x7f\x85\u2028y", r"x\x7f\x85\u2028y"),
        ("größe-漢", "größe-漢"),
    ],
)
def test_a_name_neither_ends_the_line_nor_moves_the_cursor(name: str, shown: str) -> None:
    assert format_line("group %s is gone", name) == f"group {shown} is gone"


def test_a_long_message_is_cut() -> None:
    assert (
        format_line("%s", "x" * (MAX_MESSAGE_CHARACTERS + 5))
        == "x" * MAX_MESSAGE_CHARACTERS + " ... (5 more characters)"
    )
    assert format_line("%s", "x" * MAX_MESSAGE_CHARACTERS) == "x" * MAX_MESSAGE_CHARACTERS


def test_a_traceback_keeps_its_lines() -> None:
    assert format_line("failed", exc_info=ValueError("why")).splitlines() == ["failed", "ValueError: why"]


def raise_error(topic: str) -> Exception:
    """Return the exception of a defect to which a client's name leads."""
    try:
        try:
            raise ValueError(f"{topic} is strange")
        except ValueError as problem:
            raise RuntimeError(f"{topic} cannot be found") from problem
    except RuntimeError as problem:
        return problem


def test_an_exceptions_text_cannot_forge_a_line() -> None:
    forged = "\n2026-01-01 00:00:00,000 ERROR kafkacompat: forged"
    shown = format_line("failed", exc_info=raise_error(f"x{forged}\r\u2028{forged}")).splitlines()
    assert [line for line in shown if line.startswith("2026")] == []
    assert [line[:10] for line in shown if "forged" in line] == ["ValueError", "RuntimeErr"]
    assert [line for line in shown if "ValueError" in line][-1].endswith(r"kafkacompat: forged is strange")
    assert sum(line.startswith("  File ") for line in shown) == 2
    assert "The above exception was the direct cause of the following exception:" in shown


def test_an_exceptions_text_is_cut() -> None:
    *_, last = format_line("failed", exc_info=ValueError("x" * 10 * MAX_MESSAGE_CHARACTERS)).splitlines()
    assert len(last) < MAX_MESSAGE_CHARACTERS + 100 and last.endswith("more characters)")


def filter_message(flood: ErrorFlood, at_s: float, level: int = logging.ERROR, topic: str = "t") -> str | None:
    """Return the message if the filter passes it."""
    record = logging.LogRecord("test", level, __file__, 1, "topic %s cannot be read", (topic,), None)
    record.created = at_s
    return record.getMessage() if flood.filter(record) else None


def test_errors_of_a_kind_are_logged_a_few_times_a_period_and_counted() -> None:
    flood = ErrorFlood()
    assert [filter_message(flood, 100, topic=f"{n}") for n in range(MAX_ERRORS_A_PERIOD)][
        -1
    ] == f"topic {MAX_ERRORS_A_PERIOD - 1} cannot be read"
    assert [filter_message(flood, 100) for _ in range(7)] == [None] * 7
    assert filter_message(flood, 100 + ERRORS_PERIOD_S) == "topic t cannot be read (7 more like this were dropped)"
    assert filter_message(flood, 100 + 2 * ERRORS_PERIOD_S) == "topic t cannot be read"


def test_warnings_are_always_logged() -> None:
    flood = ErrorFlood()
    assert None not in [filter_message(flood, 100, logging.WARNING) for _ in range(10 * MAX_ERRORS_A_PERIOD)]


def test_errors_of_the_operating_system_are_in_words() -> None:
    error = OSError(errno.EROFS, os.strerror(errno.EROFS), "/data/t-0")
    assert (
        format_line("%s is not opened: %s", "t-0", error)
        == "t-0 is not opened: /data/t-0: the file system is read-only"
    )


def format_json(level: int, message: str, *args: object, exc_info: BaseException | None = None) -> dict[str, str]:
    """Format a message as JSON, which has to be one line."""
    trace = (type(exc_info), exc_info, exc_info.__traceback__) if exc_info else None
    record = logging.LogRecord("kafkacompat.test", level, __file__, 1, message, args, trace)
    record.created = 1_700_000_000.25
    line = FORMATTERS["json"]().format(record)
    assert len(line.splitlines()) == 1
    fields: dict[str, str] = json.loads(line)
    return fields


def test_a_json_line_has_the_words_of_log4j() -> None:
    assert format_json(logging.WARNING, "group %s is gone", "größe") == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARN",
        "logger": "kafkacompat.test",
        "message": "group größe is gone",
    }
    levels = (1, 5, logging.DEBUG, logging.INFO, 25, logging.ERROR, logging.CRITICAL, 99)
    words = [format_json(level, "x")["level"] for level in levels]
    assert words == ["TRACE", "TRACE", "DEBUG", "INFO", "INFO", "ERROR", "FATAL", "FATAL"]


def test_a_json_line_is_one_whatever_a_name_holds() -> None:
    fields = format_json(logging.ERROR, "%s", 'a"}\n{"level": "INFO"\u2028\ud800', exc_info=raise_error("x\nforged"))
    assert fields["level"] == "ERROR"
    assert r"\n" in fields["message"]
    assert fields["exception"].splitlines()[-1] == r"RuntimeError: x\nforged cannot be found"
    long = format_json(logging.INFO, "x" * 10 * MAX_MESSAGE_CHARACTERS)["message"]
    assert len(long) < MAX_MESSAGE_CHARACTERS + 100
    error = OSError(errno.EROFS, os.strerror(errno.EROFS), "/data/t-0")
    assert format_json(logging.INFO, "%s", error)["message"] == "/data/t-0: the file system is read-only"
