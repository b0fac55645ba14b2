"""One worker process, as the broker's thread that uses it sees it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any

from kafkacompat.workers.child import END, PROBLEM, STREAM


def command() -> list[str]:
    """What starts a process that imports what this one would: of the same installation, and nothing that lies where it was started."""
    isolated = ["-I"] if sys.flags.isolated else []
    start = "import sys; sys.path[:] = sys.argv[1:]; from kafkacompat.workers.child import start; start()"
    return [sys.executable, *isolated, "-c", start, *sys.path]


class DiedError(Exception):
    """A worker process has ended, or has to."""


class Process:
    """One worker process; ``begun`` is set by who has found that it has the right code. Raises OSError when it cannot be started."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.begun = False
        self.in_step = True
        self.overdue = False

    @property
    def works(self) -> bool:
        """Whether it is there, and the next that it says will answer the next call."""
        return self.begun and self.in_step and self._process.poll() is None

    def begin(self) -> None:
        """Wait until it has imported all that it needs; raises DiedError."""
        self._ask(b"")

    def call(self, name: str, *arguments: Any) -> tuple[bool, Any]:
        """(whether it is an iterator, whose items `next` gives; else the result); raises DiedError besides."""
        kind, result = self._ask(pickle.dumps((name, arguments), pickle.HIGHEST_PROTOCOL))
        return kind == STREAM, result

    def next(self) -> tuple[bool, Any]:
        """(whether the iterator has come to its end, its next item); raises DiedError besides."""
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
            # Whatever it was (memory may be short, too), what comes next could be the answer to this call.
            self.in_step = False
            raise DiedError(f"{self._process.pid}: {problem!r}") from None
        if kind == PROBLEM:
            raise value
        return kind, value

    def kill(self) -> None:
        """Stop it whatever it is at; who waits for its result is told."""
        self._process.kill()

    def give_up(self) -> None:
        """Stop it because it took too long."""
        self.overdue = True
        self.kill()

    def end(self) -> None:
        """Let it go, and wait until it has gone."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what it did not take before it died
                stream.close()
        self._process.wait()
