"""How the log looks: one line a message, for much of what it tells of came from clients, and never a flood of errors.

Behind a message there may be a traceback. Its lines are ours, but for what exceptions say, which is one line each, too.
"""

from __future__ import annotations

import logging
import traceback
from copy import copy
from types import TracebackType
from typing import TypeAlias

from kafkacompat.storage.files.os_errors import describe_error

MAX_MESSAGE_CHARACTERS = 4000
# Line ends, terminal sequences and the like: C0, DEL, C1, the two line separators of Unicode, and what turns the direction of
# writing, so that a line shows in another order than it has.
_CONTROL_RANGES = range(0x20), range(0x7F, 0xA0), (0x61C, 0x200E, 0x200F), range(0x2028, 0x202F), range(0x2066, 0x206A)
CONTROLS = {code: repr(chr(code))[1:-1] for codes in _CONTROL_RANGES for code in codes}
# How the parts of a traceback begin that come from Python: frames with their lines of code, and what joins two exceptions.
OURS_IN_TRACEBACK = ("  File ", "\nThe above exception ", "\nDuring handling of ")
ExceptionInfo: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"
ERRORS_TOLD, ERRORS_PERIOD_S = 20, 60
KINDS_KEPT = 1000


class ErrorFlood(logging.Filter):
    """Lets through a few errors of a kind in a period: what fails for every request must not fill the disk with log.

    Of a kind are those with the same words but for the values in them. The next line that is told says how many were not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._periods: dict[tuple[str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Logging: whether a line is told."""
        if record.levelno < logging.ERROR:
            return True
        kind = record.name, record.msg
        begun, told = self._periods.get(kind, (record.created, 0))
        if record.created - begun >= ERRORS_PERIOD_S:
            if told > ERRORS_TOLD:
                record.msg = f"{record.msg} ({told - ERRORS_TOLD} more like this were not told)"
            begun, told = record.created, 0
        if len(self._periods) > KINDS_KEPT:
            self._periods.clear()
        self._periods[kind] = begun, told + 1
        return told < ERRORS_TOLD


class LineFormatter(logging.Formatter):
    """Shows control characters by their names in Python and cuts what is too long, also of what exceptions say.

    A topic's or a group's name may hold anything: it can neither end the line and begin a forged one, nor fill the disk.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Logging: put a record together, with errors of the operating system in words."""
        if isinstance(record.args, tuple) and any(isinstance(argument, OSError) for argument in record.args):
            record = copy(record)
            record.args = tuple(describe_error(arg) if isinstance(arg, OSError) else arg for arg in record.args or ())
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Logging: put the line together."""
        record.message = _one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExceptionInfo) -> str:
        """Logging: put the traceback together."""
        parts = (part.removesuffix("\n") for part in traceback.format_exception(*ei))
        return "\n".join(part if part.startswith(OURS_IN_TRACEBACK) else _one_line(part) for part in parts)


def _one_line(text: str) -> str:
    shown = text[:MAX_MESSAGE_CHARACTERS].translate(CONTROLS)
    left_out = len(text) - MAX_MESSAGE_CHARACTERS
    return f"{shown} ... ({left_out} more characters)" if left_out > 0 else shown
