"""The clock of the brokers of a test, which the test advances."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkacompat.timers import now_ms

if TYPE_CHECKING:
    from kafkacompat.adjustable_reactor import AdjustableReactor


class BrokerClock:
    """The time of all brokers of a test; see docs/testing/clock.md."""

    def __init__(self, call: Callable[..., Any], reactor: AdjustableReactor) -> None:
        self._call = call
        self._reactor = reactor

    @property
    def now_ms(self) -> int:
        """The time of day of the brokers, in milliseconds since 1970."""
        return now_ms(self._reactor)

    def advance(
        self, seconds: float = 0, *, days: float = 0, hours: float = 0, minutes: float = 0, milliseconds: float = 0
    ) -> None:
        """Advance the clock by the sum of the arguments, and return when the work that became due is done.

        Raises ClockError for a negative duration, and for a time after the year 9999.
        """
        duration_s = seconds + 60 * (minutes + 60 * (hours + 24 * days)) + milliseconds / 1000
        self._call(self._reactor.advance, duration_s)
