"""What one instance uses on one broker, and for how long its clients wait."""

from __future__ import annotations

from collections.abc import Callable

from kafkacompat.tenancy.traffic.bucket import ShareBucket
from kafkacompat.tenancy.traffic.shared import Usage


class Flow:
    """One direction of an instance's traffic on this broker. ``bucket`` is None while the direction has no limit.

    ``total_bytes``, ``requests`` and ``throttled_ms`` only grow. *on_held_back* is called when clients begin to wait.
    """

    __slots__ = (
        "_begun_ms",
        "_interval_ms",
        "_on_held_back",
        "_reported_bytes",
        "_was_overdrawn",
        "bucket",
        "requests",
        "throttled_ms",
        "total_bytes",
    )

    def __init__(self, interval_ms: int, now_ms: int, on_held_back: Callable[[], None]) -> None:
        self._on_held_back = on_held_back
        self.bucket: ShareBucket | None = None
        self.total_bytes = self.requests = self.throttled_ms = 0
        self._interval_ms = interval_ms
        self._reported_bytes, self._begun_ms = 0, now_ms
        self._was_overdrawn = False

    @property
    def most_bytes(self) -> int | None:
        """The bytes that one request may move without taking more than a burst; None without a limit."""
        return None if self.bucket is None else int(self.bucket.capacity)

    def charge(self, size_bytes: int, now_ms: int) -> None:
        """Count a request."""
        self.total_bytes += size_bytes
        self.requests += 1
        if self.bucket is not None and self.bucket.take(size_bytes, now_ms) < 0 and not self._was_overdrawn:
            self._was_overdrawn = True
            self._on_held_back()

    def find_throttle_ms(self, now_ms: int) -> int:
        """Return for how long a client waits now, 0 within the share.

        It is one interval at most, as the share may be larger after that. The client waits again if it is not.
        """
        return 0 if self.bucket is None else min(self.bucket.find_wait_ms(now_ms), self._interval_ms)

    @property
    def is_used(self) -> bool:
        """Whether there is anything to report."""
        return self.total_bytes > self._reported_bytes or self._was_overdrawn

    def measure(self, now_ms: int) -> Usage:
        """Return what was used since the last report. The direction must have a limit."""
        assert self.bucket is not None
        elapsed_s = max(now_ms - self._begun_ms, 1) / 1000
        missing = max(-self.bucket.refill(now_ms), 0.0)
        used = (self.total_bytes - self._reported_bytes) / elapsed_s
        # A client that has waited may wait no more; one byte a second says that it did.
        held_back = max(missing / elapsed_s, 1.0) if self._was_overdrawn else 0.0
        return Usage(used, held_back, self.bucket.share)

    def begin_measurement(self, now_ms: int) -> None:
        """Measure from now on."""
        self._reported_bytes, self._begun_ms = self.total_bytes, now_ms
        self._was_overdrawn = self.bucket is not None and self.bucket.refill(now_ms) < 0


class InstanceTraffic:
    """An instance's traffic on this broker since it started; connections charge it, and others read the counters."""

    __slots__ = ("fetched", "produced")

    def __init__(self, interval_ms: int, now_ms: int, on_held_back: Callable[[], None]) -> None:
        self.produced = Flow(interval_ms, now_ms, on_held_back)
        self.fetched = Flow(interval_ms, now_ms, on_held_back)

    @property
    def produced_bytes(self) -> int:
        """The bytes of all Produce requests."""
        return self.produced.total_bytes

    @property
    def fetched_bytes(self) -> int:
        """The bytes of all responses to Fetch."""
        return self.fetched.total_bytes

    @property
    def throttled_ms(self) -> int:
        """The milliseconds that all clients together had to wait."""
        return self.produced.throttled_ms + self.fetched.throttled_ms
