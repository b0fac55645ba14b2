"""Disks for tests: one that works at once, and one that works when it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred


class ImmediateDisk:
    """Runs everything at once, in the caller's thread."""

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        return maybeDeferred(function, *args, **kwargs)


class ManualDisk:
    """Runs what it was given, in order, when a test says so."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()

        def work() -> None:
            maybeDeferred(function, *args, **kwargs).chainDeferred(result)

        self.waiting.append(work)
        return result

    def work(self) -> None:
        """Do everything that waits, also what that leads to."""
        while self.waiting:
            self.waiting.popleft()()
