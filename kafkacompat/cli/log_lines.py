"""The form of the log: one line for each message, because clients chose parts of it, and no flood of errors.

The lines are for people, or one JSON object each (kafkacompat.log.format).

A traceback may follow a message. Its lines come from the code, except the texts of exceptions, which become one line each, too.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from copy import copy
from datetime import datetime, timezone
from types import TracebackType
from typing import TypeAlias

from kafkacompat.config.loggers import find_level_word
from kafkacompat.storage.files.os_errors import describe_error

MAX_MESSAGE_CHARACTERS = 4000
# Line ends, terminal sequences and the like: C0, DEL, C1, the two line separators of Unicode, and the characters that change the
# direction of writing, which would show a line in another order.
_CONTROL_RANGES = range(0x20), range(0x7F, 0xA0), (0x61C, 0x200E, 0x200F), range(0x2028, 0x202F), range(0x2066, 0x206A)
CONTROLS = {code: repr(chr(code))[1:-1] for codes in _CONTROL_RANGES for code in codes}
# The beginnings of a traceback's parts that come from Python: frames with their lines of code, and the joints of two exceptions.
TRACEBACK_PREFIXES = ("  File ", "\nThe above exception ", "\nDuring handling of ")
ExceptionInfo: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"
MAX_ERRORS_A_PERIOD, ERRORS_PERIOD_S = 20, 60
KINDS_KEPT = 1000


class ErrorFlood(logging.Filter):
    """Drops errors of a kind after a few in a period: an error of every request must not fill the disk with log.

    Errors of one kind have the same words with other values. The next line says how many were dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self._periods: dict[tuple[str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Logging calls this: return whether to write a record."""
        if record.levelno < logging.ERROR:
            return True
        kind = record.name, record.msg
        begun, count = self._periods.get(kind, (record.created, 0))
        if record.created - begun >= ERRORS_PERIOD_S:
            if count > MAX_ERRORS_A_PERIOD:
                record.msg = f"{record.msg} ({count - MAX_ERRORS_A_PERIOD} more like this were dropped)"
            begun, count = record.created, 0
        if len(self._periods) > KINDS_KEPT:
            self._periods.clear()
        self._periods[kind] = begun, count + 1
        return count < MAX_ERRORS_A_PERIOD


class LineFormatter(logging.Formatter):
    """Replaces control characters by their names in Python, and cuts long texts, also in the texts of exceptions.

    The name of a topic or a group may hold any characters: it can neither begin a forged line nor fill the disk.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Logging calls this: format a record, with errors of the operating system in words."""
        return super().format(_with_described_errors(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Logging calls this: format the line of a record."""
        record.message = _to_one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExceptionInfo) -> str:
        """Logging calls this: format the traceback of a record."""
        parts = (part.removesuffix("\n") for part in traceback.format_exception(*ei))
        return "\n".join(part if part.startswith(TRACEBACK_PREFIXES) else _to_one_line(part) for part in parts)


class JsonFormatter(logging.Formatter):
    """Writes one JSON object a line, with the levels of log4j; its texts are those of `LineFormatter`."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = LineFormatter()

    def format(self, record: logging.LogRecord) -> str:
        """Logging calls this: format a record."""
        record = _with_described_errors(record)
        fields = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": find_level_word(record.levelno),
            "logger": record.name,
            "message": _to_one_line(record.getMessage()),
        }
        if record.exc_info:
            fields["exception"] = self._lines.formatException(record.exc_info)
        return json.dumps(fields)


FORMATTERS: Mapping[str, Callable[[], logging.Formatter]] = {"text": LineFormatter, "json": JsonFormatter}
"""By the values of kafkacompat.log.format."""


def _with_described_errors(record: logging.LogRecord) -> logging.LogRecord:
    if isinstance(record.args, tuple) and any(isinstance(argument, OSError) for argument in record.args):
        record = copy(record)
        record.args = tuple(describe_error(arg) if isinstance(arg, OSError) else arg for arg in record.args or ())
    return record


def _to_one_line(text: str) -> str:
    shown = text[:MAX_MESSAGE_CHARACTERS].translate(CONTROLS)
    left_out = len(text) - MAX_MESSAGE_CHARACTERS
    return f"{shown} ... ({left_out} more characters)" if left_out > 0 else shown
