"""A job that is interrupted in the middle and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from compat_tests.frameworks.programme import Programme
from compat_tests.frameworks.reading import Reader

# The exit codes of a program that ends in order on SIGTERM; a JVM gives the second.
STOPPED = (0, 143)

Chunk = TypeVar("Chunk")
Value = TypeVar("Value")


@dataclass(frozen=True)
class InterruptedJob:
    """*begin* starts the job, or starts it again over what it left; *interrupt* stops or kills it.

    A job that is interrupted *at_work* has all its input then, and must not have written all its output. Another job may have
    finished the first part of its input.
    """

    begin: Callable[[], Programme]
    interrupt: Callable[[Programme], object]
    at_work: bool = False
    timeout_seconds: float = 120

    def run(self, reader: Reader, count: int, more: Callable[[], object]) -> None:
        """Interrupt the job once it has written something, add input by *more* and let it write *count* records.

        AssertionError, if it ends by itself, if it writes other than *count* records, or if it has no work left *at_work*.
        """
        with self.begin() as first:
            first.until(reader.read, self.timeout_seconds)
            if self.at_work:
                more()
            self.interrupt(first)
        if self.at_work:
            assert len(reader.read()) < count, "it was done before it was interrupted"
        else:
            more()
        with self.begin() as second:
            second.until(lambda: len(reader.read()) >= count, self.timeout_seconds)
            assert second.stop() in STOPPED, second.log
        # Nothing more may follow.
        assert len(reader.read()) == count


def write_before(
    check: Callable[[], Value], chunks: Iterator[Chunk], write: Callable[[Chunk], object]
) -> Callable[[], Value]:
    """Return *check* preceded by writing the next chunk, if there is another.

    Input that grows while a job waits for its result makes a kill fall into the middle of the job's work.
    """

    def write_and_check() -> Value:
        for chunk in islice(chunks, 1):
            write(chunk)
        return check()

    return write_and_check


def split(values: Sequence[Value], size: int) -> Iterator[Sequence[Value]]:
    """Return the values in chunks of *size*; the last one may be smaller."""
    return (values[first : first + size] for first in range(0, len(values), size))
