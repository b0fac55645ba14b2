"""Log lines about clients, up to a bound: a hostile client must not fill the disk with log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

MOST_LINES = 100
"""Lines about a client in a period."""
MOST_CLIENTS = 1000
"""Clients that have a bound of their own in a period; all others share one."""
OTHERS = "others"


class LoggedComplaints:
    """Logs at most *most_lines* lines about a client in each *period_s* seconds.

    A client is any text, such as an address. If lines were left out, a line has their number when the next period begins.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        most_lines: int = MOST_LINES,
        period_s: float = 1.0,
        say: Callable[[str, str], None] = log.warning,
    ) -> None:
        self._clock = clock
        self._most_lines = most_lines
        self._period_s = period_s
        self._say = say
        self._said: dict[str, int] = {}
        self._since = clock.seconds()

    def __call__(self, client: str, text: str) -> None:
        if self._clock.seconds() - self._since >= self._period_s:
            self._start_over()
        if client not in self._said and len(self._said) >= MOST_CLIENTS:
            client = OTHERS
        said = self._said[client] = self._said.get(client, 0) + 1
        if said <= self._most_lines:
            self._say("%s", text)

    def _start_over(self) -> None:
        for client, said in self._said.items():
            if said > self._most_lines:
                self._say("%s", f"{said - self._most_lines} more lines like these about {client}")
        self._said.clear()
        self._since = self._clock.seconds()
