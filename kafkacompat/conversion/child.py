"""The process that converts: calls come in by standard input, results leave by standard output, both pickled.

It ends when its input does, so it never outlives the broker, however that ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any

from kafkacompat.wire.conversion import down_convert, up_convert

FUNCTIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in (down_convert, up_convert)}
NICENESS = 5
"""Conversions yield the processor to the broker, which has everybody else to answer."""


def main() -> None:
    """Answer (function's name, arguments) with (whether it succeeded, result or exception), until the input ends."""
    # Terminals and service managers signal the whole group; the broker then says when it is over.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    calls, results = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            name, arguments = pickle.load(calls)
        except EOFError:
            return
        try:
            succeeded, result = True, FUNCTIONS[name](*arguments)
        except Exception as problem:
            succeeded, result = False, problem
        pickle.dump((succeeded, result), results, pickle.HIGHEST_PROTOCOL)
        results.flush()
