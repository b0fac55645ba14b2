"""The reactors that brokers run in, built without becoming Twisted's global one."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from kafkacompat.timers import SteadyClock


def build_reactor() -> Any:
    """Return the epoll reactor of Linux, or the portable one with KAFKACOMPAT_PORTABLE=1; its timers are steady."""
    return make_steady(_choose_reactor())()


def _choose_reactor() -> type[Any]:
    if os.environ.get("KAFKACOMPAT_PORTABLE") == "1" or not sys.platform.startswith("linux"):
        from twisted.internet.selectreactor import SelectReactor

        return SelectReactor
    from twisted.internet.epollreactor import EPollReactor

    return EPollReactor


def make_steady(base: type[Any]) -> type[Any]:
    """Return a class of reactors whose timers do not depend on the machine's clock, which may be set.

    Twisted's own reactors count in the time of day: while the clock is set back by an hour, no timer of theirs ends.
    """
    began_s = time.time() - time.monotonic()

    class SteadyReactor(SteadyClock, base):  # type: ignore[misc]
        def seconds(self) -> float:
            return time.monotonic() + began_s

        def time_of_day(self) -> float:
            return time.time()

    return SteadyReactor
