"""What one instance uses on one broker, and for how long its clients wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafkacompat.tenancy.traffic.bucket import ShareBucket
from kafkacompat.tenancy.traffic.shared import MET, Usage

REPORTS_AN_INTERVAL = 4
"""Reports of a broker in an interval, so that shares have moved within one interval."""
WINDOW_REPORTS = 2
"""Reports that a measurement covers: fewer than an interval has, so that a broker whose clients have gone gives all back within one."""
FADING = 0.8
"""What is left of the remembered use from report to report."""


class Flow:
    """One direction of an instance's traffic on this broker. ``bucket`` is None while the direction has no limit.

    ``total_bytes`` and ``throttled_ms`` only grow. *on_held_back* is called when clients begin to wait, ``on_used`` at the
    first use after ``is_noted`` was reset.
    """

    __slots__ = (
        "_interval_ms",
        "_marks",
        "_on_held_back",
        "_recent",
        "_was_overdrawn",
        "bucket",
        "is_noted",
        "on_used",
        "throttled_ms",
        "total_bytes",
    )

    def __init__(self, interval_ms: int, now_ms: int, on_held_back: Callable[[], None]) -> None:
        self._on_held_back = on_held_back
        self.on_used: Callable[[], None] = lambda: None
        self.is_noted = False
        self.bucket: ShareBucket | None = None
        self.total_bytes = self.throttled_ms = 0
        self._interval_ms = interval_ms
        self._marks: deque[tuple[int, int]] = deque([(now_ms, 0)])
        self._was_overdrawn = False
        self._recent = 0.0

    @property
    def most_bytes(self) -> int | None:
        """The bytes that one request may move without taking more than a burst; None without a limit."""
        return None if self.bucket is None else int(self.bucket.capacity)

    def charge(self, size_bytes: int, now_ms: int) -> None:
        """Count a request."""
        if not self.is_noted:
            self.is_noted = True
            self.forget_use(now_ms)
            self.on_used()
        self.total_bytes += size_bytes
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
        return self.total_bytes > self._marks[0][1] or self._was_overdrawn

    def measure(self, now_ms: int, most_remembered: float = 0.0) -> Usage:
        """Return what was used lately, and whether clients wait. The direction must have a limit. To be called for each report.

        Up to *most_remembered* the use is that of the last seconds: a little traffic often comes in bursts with pauses between.
        """
        assert self.bucket is not None
        begun_ms, begun_bytes = self._marks[0]
        elapsed_ms = max(now_ms - begun_ms, self._interval_ms // REPORTS_AN_INTERVAL)
        used = (self.total_bytes - begun_bytes) / (elapsed_ms / 1000)
        missing = max(-self.bucket.refill(now_ms), 0.0)
        held_back = max(missing / (self._interval_ms / 1000), MET) if self._was_overdrawn else 0.0
        self._recent = min(max(used, self._recent * FADING), most_remembered)
        return Usage(max(used, self._recent), held_back, self.bucket.share)

    def begin_measurement(self, now_ms: int) -> None:
        """Note that a report was made. The next one covers some time before it, too."""
        marks = self._marks
        marks.append((now_ms, self.total_bytes))
        oldest_ms = now_ms - self._interval_ms * (WINDOW_REPORTS - 1) // REPORTS_AN_INTERVAL
        while len(marks) > 1 and marks[1][0] <= oldest_ms:
            marks.popleft()
        self._was_overdrawn = self.bucket is not None and self.bucket.refill(now_ms) < 0

    def forget_use(self, now_ms: int) -> None:
        """Measure from now on only."""
        self._marks.clear()
        self._marks.append((now_ms, self.total_bytes))


class InstanceTraffic:
    """An instance's traffic on this broker; connections charge it while the instance has a limit."""

    __slots__ = ("fetched", "produced")

    def __init__(self, interval_ms: int, now_ms: int, on_held_back: Callable[[], None]) -> None:
        self.produced = Flow(interval_ms, now_ms, on_held_back)
        self.fetched = Flow(interval_ms, now_ms, on_held_back)

    @property
    def is_limited(self) -> bool:
        """Whether either direction has a share here, so that requests need a meter."""
        return self.produced.bucket is not None or self.fetched.bucket is not None

    @property
    def throttled_ms(self) -> int:
        """The milliseconds that all clients together had to wait."""
        return self.produced.throttled_ms + self.fetched.throttled_ms
