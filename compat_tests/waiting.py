"""Waiting for effects of another process: by checks within a deadline, never by a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

_NEVER_SET = threading.Event()
_FIRST_PAUSE_SECONDS = 0.002


def pause(seconds: float) -> None:
    """Give the other process *seconds* between two questions."""
    _NEVER_SET.wait(seconds)


def until(check: Callable[[], Value], *, timeout_seconds: float = 30, every_seconds: float = 0.05) -> Value:
    """Call *check* until it returns something true, and return that; AssertionError with its last answer otherwise.

    Most waits are short. The first pause is 2 ms, and each is twice as long as the one before, up to *every_seconds*.
    """
    deadline = time.monotonic() + timeout_seconds
    pause_seconds = min(_FIRST_PAUSE_SECONDS, every_seconds)
    while not (answer := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{getattr(check, '__name__', check)}: still {answer!r} after {timeout_seconds} s")
        pause(pause_seconds)
        pause_seconds = min(2 * pause_seconds, every_seconds)
    return answer
