"""One worker process, from the side of the broker's thread that uses it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any

from kafkacompat.workers.child import END, PROBLEM, STREAM


def build_command() -> list[str]:
    """Return the command of a worker: it imports from this process's paths, and nothing from its current folder."""
    isolated = ["-I"] if sys.flags.isolated else []
    start = "import sys; sys.path[:] = sys.argv[1:]; from kafkacompat.workers.child import start_worker; start_worker()"
    return [sys.executable, *isolated, "-c", start, *sys.path]


class DiedError(Exception):
    """A worker process has ended, or must end."""


class Process:
    """One worker process.

    The caller sets ``begun`` when it has checked that the process has the broker's code. The constructor raises OSError when the
    process cannot be started.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(build_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.begun = False
        self.in_step = True
        self.overdue = False

    @property
    def works(self) -> bool:
        """Whether the process runs, and its next answer belongs to the next call."""
        return self.begun and self.in_step and self._process.poll() is None

    def begin(self) -> None:
        """Wait until the process has imported its modules; raises DiedError."""
        self._ask(b"")

    def call(self, name: str, *arguments: Any) -> tuple[bool, Any]:
        """Call a function; returns (True, None) for an iterator, whose items `next` returns, or (False, result).

        Raises DiedError, and the function's own exceptions.
        """
        kind, result = self._ask(pickle.dumps((name, arguments), pickle.HIGHEST_PROTOCOL))
        return kind == STREAM, result

    def next(self) -> tuple[bool, Any]:
        """Return (whether the iterator has ended, its next item); raises DiedError, and the iterator's own exceptions."""
        kind, item = self._ask(b"\n")
        return kind == END, item

    def _ask(self, question: bytes) -> tuple[int, Any]:
        calls, results = self._process.stdin, self._process.stdout
        assert calls is not None
        assert results is not None
        try:
            calls.write(question)
            calls.flush()
            kind, value = pickle.load(results)
        except Exception as problem:
            # Whatever failed (memory may be short), the process may still answer this call later.
            self.in_step = False
            raise DiedError(f"{self._process.pid}: {problem!r}") from None
        if kind == PROBLEM:
            raise value
        return kind, value

    def kill(self) -> None:
        """Kill the process; the thread that waits for its answer gets DiedError."""
        self._process.kill()

    def give_up(self) -> None:
        """Kill the process because it took too long."""
        self.overdue = True
        self.kill()

    def end(self) -> None:
        """Kill the process and wait for its end."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # the rest of a call that the process did not read
                stream.close()
        self._process.wait()
