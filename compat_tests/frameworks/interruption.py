"""A job that is interrupted in the middle and started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compat_tests.frameworks.programme import Programme
from compat_tests.frameworks.reading import Reader

# The exit codes of a program that ends in order on SIGTERM; a JVM gives the second.
STOPPED = (0, 143)


@dataclass(frozen=True)
class InterruptedJob:
    """*begin* starts the job, or starts it again over what it left; *interrupt* stops or kills it."""

    begin: Callable[[], Programme]
    interrupt: Callable[[Programme], object]
    timeout_seconds: float = 120

    def run(self, reader: Reader, count: int, more: Callable[[], object]) -> None:
        """Let the job write something, add input by *more* and interrupt it at once; begin again and let it write *count* records.

        AssertionError, if it ends by itself, if it writes other than *count* records, or if it is done too early.
        """
        with self.begin() as first:
            first.until(reader.read, self.timeout_seconds)
            more()
            self.interrupt(first)
        assert len(reader.read()) < count, "it was done before it was interrupted"
        with self.begin() as second:
            second.until(lambda: len(reader.read()) >= count, self.timeout_seconds)
            assert second.stop() in STOPPED, second.log
        # Nothing more may follow.
        assert len(reader.read()) == count
