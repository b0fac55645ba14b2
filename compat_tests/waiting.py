"""Waiting for what another process does: by asking again, within a deadline, never by a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

_NEVER_SET = threading.Event()


def pause(seconds: float) -> None:
    """Give the other process *seconds* between two questions."""
    _NEVER_SET.wait(seconds)


def until(check: Callable[[], Value], *, timeout_seconds: float = 30, every_seconds: float = 0.05) -> Value:
    """Ask *check* until its answer is true and return that answer; AssertionError with the last one otherwise."""
    deadline = time.monotonic() + timeout_seconds
    while not (answer := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{getattr(check, '__name__', check)}: still {answer!r} after {timeout_seconds} s")
        pause(every_seconds)
    return answer
