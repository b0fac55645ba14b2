"""The throttle time of one connection: while it lasts, no byte is read and no request is started (KIP-219)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.tenancy.traffic.metering import Flow
    from kafkacompat.timers import Clock, DelayedCall


class Muting:
    """Mutes one connection; ``is_active`` says whether it is muted now.

    *on_begin* is called when the connection becomes muted, *on_end* when its throttle time is over.
    """

    __slots__ = ("_clock", "_end", "_flow", "_on_begin", "_on_end", "is_active")

    def __init__(self, clock: Clock, on_begin: Callable[[], None], on_end: Callable[[], None]) -> None:
        self.is_active = False
        self._clock = clock
        self._on_begin = on_begin
        self._on_end = on_end
        self._end: DelayedCall | None = None
        self._flow: Flow | None = None

    def mute(self, duration_ms: int, flow: Flow | None = None) -> None:
        """Mute the connection for at least *duration_ms*, and afterwards for as long as *flow* has nothing left of its share."""
        self._flow = flow or self._flow
        if self._end is None:
            self._end = self._clock.callLater(duration_ms / 1000, self._finish)
            self.is_active = True
            self._on_begin()
        elif self._clock.seconds() + duration_ms / 1000 > self._end.getTime():
            self._end.reset(duration_ms / 1000)

    def cancel(self) -> None:
        """End without *on_end*, and drop the callbacks: the connection is closed, and no cycle may outlive it."""
        self._on_begin = self._on_end = _do_nothing
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self.is_active = False

    def _finish(self) -> None:
        self._end = None
        self.is_active = False
        if self._flow is None or not self._mute_longer(self._flow):
            self._on_end()

    def _mute_longer(self, flow: Flow) -> bool:
        """Mute the connection again if its instance still has nothing left of its share on this broker."""
        throttle_ms = flow.find_throttle_ms(int(self._clock.seconds() * 1000))
        if throttle_ms:
            flow.throttled_ms += throttle_ms
            self.mute(throttle_ms)
        else:
            self._flow = None
        return throttle_ms > 0


def _do_nothing() -> None:
    pass
