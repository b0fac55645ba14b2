"""What is needed of a reactor by code that waits: the time, and to be called later.

Twisted's reactors and its `task.Clock` both fit; zope's `IReactorTime` says the same, but not to a type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class DelayedCall(Protocol):
    """A call that will be made, unless it is cancelled."""

    def active(self) -> bool:
        """Whether the call is still to come."""

    def cancel(self) -> None:
        """Do not make the call."""

    def reset(self, seconds: float) -> None:
        """Make it this many seconds from now instead."""

    def getTime(self) -> float:
        """When it will be made, on the clock's scale."""


class Clock(Protocol):
    """Time in seconds, and calls at a later time."""

    def seconds(self) -> float:
        """The time now."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: Any, **kwargs: Any) -> DelayedCall:
        """Call *callable* after *delay* seconds."""


def now_ms(clock: Clock) -> int:
    """The clock's time in milliseconds."""
    return int(clock.seconds() * 1000)
