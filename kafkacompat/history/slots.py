"""The slots of clients in a run: in each, one process replaces another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kafkacompat.history.client import EXIT_REPLACE, ClientOrders

REPLACE_AFTER_S = 1.0
LAST_LINE_BYTES = 1000


class ClientSlot:
    """The slot of one client."""

    def __init__(self, orders: ClientOrders) -> None:
        self._orders = orders
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self.was_killed = False

    @property
    def role(self) -> str:
        """The role of its clients."""
        return self._orders.role

    @property
    def name(self) -> str:
        """The name of the present client."""
        return self._orders.name

    @property
    def has_begun(self) -> bool:
        """Whether the present client has recorded an event."""
        return self._orders.recording_path.exists() and self._orders.recording_path.stat().st_size > 0

    @property
    def log_path(self) -> Path:
        """The log file of the slot's clients."""
        return self._orders.recording_path.with_name(f"{self._orders.identity}.log")

    def start(self) -> None:
        """Start a client, or the replacement of the last one."""
        if self._process is not None:
            self._orders = self._orders._replace(incarnation=self._orders.incarnation + 1)
        self.was_killed, self._started_at = False, time.monotonic()
        with self.log_path.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kafkacompat.history"],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        with self._process.stdin as orders:
            orders.write(json.dumps(self._orders._asdict()).encode())

    def may_be_replaced(self) -> bool:
        """Return whether the client ended and may be replaced: not at once, unless it was killed."""
        return self.exit_code is not None and (self.was_killed or time.monotonic() > self._started_at + REPLACE_AFTER_S)

    @property
    def has_failed(self) -> bool:
        """Whether the client ended with an unexpected exit code."""
        return self.exit_code not in (None, 0, EXIT_REPLACE, -signal.SIGKILL, -signal.SIGTERM)

    def last_log_line(self) -> str:
        """Return the last line of the log file."""
        with self.log_path.open("rb") as errors:
            errors.seek(-min(LAST_LINE_BYTES, errors.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = errors.read().decode("utf-8", "replace").splitlines()
        return lines[-1] if lines else f"{self.name} has logged nothing"

    def kill(self) -> None:
        """Kill the client with SIGKILL, if it runs."""
        self.was_killed = True
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Stop the client with SIGTERM, if it runs."""
        if self._process is not None:
            self._process.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait for the client's end, and kill it after *seconds*; returns whether it ended in time."""
        if self._process is None:
            return True
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
            return False
        return True

    @property
    def exit_code(self) -> int | None:
        """The exit code of the client, None while it runs."""
        return None if self._process is None else self._process.poll()
