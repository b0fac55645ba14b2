"""How the log looks: one line a message, for much of what it tells of came from clients, and never a flood of errors."""

from __future__ import annotations

import logging

MAX_MESSAGE_CHARACTERS = 4000
# Line ends, terminal sequences and the like: C0, DEL, C1, and the two line separators of Unicode.
CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}
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
    """Shows control characters by their names in Python and cuts what is too long; a traceback follows as it is.

    A topic's or a group's name may hold anything: it can neither end the line and begin a forged one, nor fill the disk.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Logging: put the line together."""
        message = record.message[:MAX_MESSAGE_CHARACTERS].translate(CONTROLS)
        left_out = len(record.message) - MAX_MESSAGE_CHARACTERS
        record.message = f"{message} ... ({left_out} more characters)" if left_out > 0 else message
        return super().formatMessage(record)
