"""A worker process: calls come in by standard input, results leave by standard output, both pickled.

It ends when its input does, or within a second when it was computing then: it must write nothing into folders that the next
broker has already put in order.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from threading import Event, Thread
from typing import Any, BinaryIO

FUNCTIONS = {
    "compact": "kafkacompat.storage.compaction",
    "down_convert": "kafkacompat.wire.conversion",
    "scrub": "kafkacompat.storage.segment.scrub",
    "take_in": "kafkacompat.storage.intake.preparation",
}
"""What may be called, and the module that has it.

A function that gives an iterator computes each item when it is asked for."""

NICENESS = 5
"""What is done here yields the processor to the broker, which has everybody else to answer."""

RESULT, PROBLEM, STREAM, ITEM, END = range(5)
"""What comes back: a result; an exception; an iterator, and for each byte that asks for its next item, that or the end."""


@cache
def function(name: str) -> Callable[..., Any]:
    """A function by its name."""
    found: Callable[..., Any] = getattr(import_module(FUNCTIONS[name]), name)
    return found


def start() -> None:
    """Be such a process."""
    Thread(target=_end_without, args=(os.getppid(),), daemon=True).start()
    main()


def _end_without(broker_id: int) -> None:
    never = Event()
    while os.getppid() == broker_id:
        never.wait(1)
    os._exit(1)


def main() -> None:
    """Say (RESULT, None), then answer (function's name, arguments) with (what comes back, value), until the input ends."""
    # Terminals and service managers signal the whole group; the broker then says when it is over.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    try:
        _serve(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, pickle.UnpicklingError):
        return
    except BrokenPipeError:
        # The broker was killed: what is left for it is not to be written on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _serve(calls: BinaryIO, results: BinaryIO) -> None:
    # All of it now, while the broker can say whether it is what the broker has: its files may be replaced at any time.
    for name in FUNCTIONS:
        function(name)
    _say(results, (RESULT, None))
    while True:
        name, arguments = pickle.load(calls)
        for answer in _answers(calls, name, arguments):
            _say(results, answer)


def _say(results: BinaryIO, answer: tuple[int, Any]) -> None:
    pickle.dump(answer, results, pickle.HIGHEST_PROTOCOL)
    results.flush()


def _answers(calls: BinaryIO, name: str, arguments: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    try:
        result = function(name)(*arguments)
        if not isinstance(result, Iterator):
            yield RESULT, result
            return
        yield STREAM, None
        while calls.read(1):
            try:
                item = next(result)
            except StopIteration:
                yield END, None
                return
            yield ITEM, item
    except Exception as problem:
        yield PROBLEM, problem
