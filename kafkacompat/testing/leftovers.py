"""What tests have left behind: brokers that run, clients that were connected to the end, threads and files.

Importing this module loads no broker. All lists are bounded.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MOST_LINES = 20
"""Lines of a report; the others are counted."""
OWN_THREADS = ("kafkacompat ", "disk ", "conversion", "compaction", "scrub")
"""How the names of the brokers' threads begin."""
DESCRIPTORS = "/proc/self/fd"


class Leftovers:
    """The leftovers of one process, in the order in which they were noticed."""

    def __init__(self) -> None:
        self._running: dict[int, str] = {}
        self._folders: set[str] = set()
        self._lines: list[str] = []
        self._others = 0
        self.has_failed = False
        """Whether the present test has failed: its traceback may hold clients, which are not reported."""
        self._place: str | None = None

    def note_started(self, key: int, bootstrap_servers: str, folders: Iterable[str]) -> None:
        """Note that the brokers of an object run, and where their data are, if not in memory."""
        self._running[key] = f"the broker at {bootstrap_servers} was not stopped{self._describe_place()}"
        self._folders.update(folders)

    def note_stopped(self, key: int, clients: Iterable[str]) -> None:
        """Note that the brokers of an object have ended, while these clients were connected."""
        self._running.pop(key, None)
        if not self.has_failed:
            for client, count in Counter(clients).items():
                connections = f"a connection of {client} was" if count == 1 else f"{count} connections of {client} were"
                self._add(f"{connections} not closed{self._describe_place()}")

    @contextmanager
    def watch_threads(self) -> Iterator[None]:
        """Note the threads that are started meanwhile and left running."""
        before = set(threading.enumerate())
        yield
        for thread in threading.enumerate():
            if thread not in before and not thread.name.startswith(OWN_THREADS) and not self.has_failed:
                self._add(f"the thread {thread.name} was left running{self._describe_place()}")

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Name *place* instead of the present test meanwhile."""
        self._place = place
        try:
            yield
        finally:
            self._place = None

    def _describe_place(self) -> str:
        test = self._place or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        return f" ({test})" if test else ""

    def _add(self, line: str) -> None:
        if len(self._lines) < MOST_LINES:
            self._lines.append(line)
        else:
            self._others += 1

    def take(self) -> list[str]:
        """Return the lines of a report, and begin again."""
        for line in self._running.values():
            self._add(line)
        if not self._running:
            for path in _list_open_files(self._folders):
                self._add(f"the file {path} was left open")
        lines = self._lines + ([f"and {self._others} more"] if self._others else [])
        self._running, self._folders, self._lines, self._others = {}, set(), [], 0
        return lines


def _list_open_files(folders: set[str]) -> list[str]:
    """Return the open files of this process in *folders*, where the system shows them."""
    if not folders or not os.path.isdir(DESCRIPTORS):
        return []
    paths = []
    for name in os.listdir(DESCRIPTORS):
        try:
            paths.append(os.readlink(f"{DESCRIPTORS}/{name}"))
        except OSError:  # the descriptor of this listing
            continue
    return sorted(path for path in paths if any(path.startswith(f"{folder}/") for folder in folders))


LEFTOVERS = Leftovers()
"""The leftovers of this process."""
