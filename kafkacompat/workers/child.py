"""A worker process: it reads calls from standard input and writes results to standard output, both pickled.

It ends when its input ends, or within a second if it is computing then: it must write nothing into folders that the next
broker has already recovered.
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
"""The functions that the broker may call, with their modules.

A function that returns an iterator computes each item when the broker asks for it."""

NICENESS = 5
"""A worker yields the processor to the broker, which answers all clients."""

RESULT, PROBLEM, STREAM, ITEM, END = range(5)
"""Kinds of answers: a result, an exception, or an iterator. For each further byte, an iterator's next item or its end."""


@cache
def import_function(name: str) -> Callable[..., Any]:
    """Import and return a function of `FUNCTIONS`."""
    imported: Callable[..., Any] = getattr(import_module(FUNCTIONS[name]), name)
    return imported


def start_worker() -> None:
    """Run a worker process until the broker ends it or is gone."""
    Thread(target=_end_without_broker, args=(os.getppid(),), daemon=True).start()
    main()


def _end_without_broker(broker_id: int) -> None:
    never = Event()
    while os.getppid() == broker_id:
        never.wait(1)
    os._exit(1)


def main() -> None:
    """Write (RESULT, None), then answer each (function's name, arguments) with (kind, value) until the input ends."""
    # Terminals and service managers signal the whole process group; the broker decides when its workers end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    try:
        _serve_calls(sys.stdin.buffer, sys.stdout.buffer)
    except (EOFError, pickle.UnpicklingError):
        return
    except BrokenPipeError:
        # The broker was killed: Python must not write the buffered rest when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _serve_calls(calls: BinaryIO, results: BinaryIO) -> None:
    # Import everything now, while the broker can compare the files with its own: an upgrade may replace them at any time.
    for name in FUNCTIONS:
        import_function(name)
    _write_answer(results, (RESULT, None))
    while True:
        name, arguments = pickle.load(calls)
        for answer in _compute_answers(calls, name, arguments):
            _write_answer(results, answer)


def _write_answer(results: BinaryIO, answer: tuple[int, Any]) -> None:
    pickle.dump(answer, results, pickle.HIGHEST_PROTOCOL)
    results.flush()


def _compute_answers(calls: BinaryIO, name: str, arguments: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    try:
        result = import_function(name)(*arguments)
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
