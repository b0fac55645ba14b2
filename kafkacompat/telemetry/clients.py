"""One client that pushes metrics: its subscription, and when it may send the next request."""

from __future__ import annotations

from dataclasses import dataclass

from kafkacompat.telemetry.subscriptions import ClientProperties, ClientSubscription
from kafkacompat.wire.errors import ErrorCode

NEVER = -(1 << 62)
LEAST_EXPIRY_MS = 60_000


@dataclass(slots=True)
class TelemetryClient:
    """A client instance. Times are milliseconds of the steady clock; ``version`` is that of the subscriptions.

    ``last_error`` is that of its last request: after some errors a client asks for its subscription at once.
    """

    instance_id: bytes
    properties: ClientProperties
    subscription: ClientSubscription
    version: int
    used_ms: int = 0
    last_get_ms: int = NEVER
    last_push_ms: int = NEVER
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def expiry_ms(self) -> int:
        """The time after which a silent client is forgotten."""
        return max(LEAST_EXPIRY_MS, 3 * self.subscription.interval_ms)

    def may_get(self, now_ms: int) -> bool:
        """Note a request for the subscription; return False if it comes before the interval is over."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.subscription.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Note a push; return False if it comes too early. The first one after `may_get` comes at a random time."""
        is_first = self.last_get_ms > self.last_push_ms
        if not is_first and now_ms - self.last_push_ms < self.subscription.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True
