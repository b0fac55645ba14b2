"""How the log looks: one line a message, for much of what it tells of came from clients."""

from __future__ import annotations

import logging

MAX_MESSAGE_CHARACTERS = 4000
# Line ends, terminal sequences and the like: C0, DEL, C1, and the two line separators of Unicode.
CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}


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
