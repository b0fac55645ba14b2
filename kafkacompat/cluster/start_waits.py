"""Waits of a broker that starts: for its registration, and for its first metadata."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.timers import Clock, DelayedCall

INFORMATION_TIMEOUT_S = 10.0
"""Longest time that clients of a starting broker wait for its first metadata."""


class StartWaits:
    """Requests that a broker has received before it can answer them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unregistered: list[Deferred[None]] = []
        self._uninformed: dict[Deferred[None], DelayedCall] = {}

    def wait_until_registered(self) -> Deferred[None]:
        """Fire when this broker is registered."""
        registered: Deferred[None] = Deferred()
        self._unregistered.append(registered)
        return registered

    def note_registered(self) -> None:
        """End the waits for the registration."""
        unregistered, self._unregistered = self._unregistered, []
        for registered in unregistered:
            registered.callback(None)

    def wait_until_informed(self) -> Deferred[None]:
        """Fire at the next metadata, and after INFORMATION_TIMEOUT_S at the latest."""
        informed: Deferred[None] = Deferred()
        self._uninformed[informed] = self._clock.callLater(INFORMATION_TIMEOUT_S, self._end_wait, informed)
        return informed

    def note_informed(self) -> None:
        """End the waits for metadata."""
        for informed in list(self._uninformed):
            self._end_wait(informed)

    def _end_wait(self, informed: Deferred[None]) -> None:
        timeout = self._uninformed.pop(informed)
        if timeout.active():
            timeout.cancel()
        informed.callback(None)
