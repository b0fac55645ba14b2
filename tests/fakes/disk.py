"""Disks for tests: one runs work at once, the other when a test says so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred


class _Disk(ABC):
    @abstractmethod
    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """See Disk.run."""

    def run_each(self, function: Callable[[Any], object], items: Sequence[Any]) -> Deferred[None]:
        """Run all operations, also those after a failing one."""

        def run_all() -> None:
            problems: list[Exception] = []
            for item in items:
                try:
                    function(item)
                except Exception as problem:
                    problems.append(problem)
            if problems:
                raise problems[0]

        return self.run(run_all)


class ImmediateDisk(_Disk):
    """Runs everything at once, in the caller's thread."""

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        return maybeDeferred(function, *args, **kwargs)


class ManualDisk(_Disk):
    """Runs its queued work, in order, when a test says so."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()

        def work() -> None:
            maybeDeferred(function, *args, **kwargs).chainDeferred(result)

        self.waiting.append(work)
        return result

    def work(self) -> None:
        """Run all waiting work, and the work that it adds."""
        while self.waiting:
            self.waiting.popleft()()
