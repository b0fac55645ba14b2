"""A token bucket whose rate is a broker's share; it changes from interval to interval."""

from __future__ import annotations

from math import ceil

MAX_WAIT_MS = 2**31 - 1


class ShareBucket:
    """Tokens, one a byte, that come back at the rate of a share, up to those of one interval; it may be overdrawn.

    All brokers' buckets together hold one interval's bytes of the instance's limit at most, as their shares add up to it. When a share
    shrinks, the tokens above the new bound are lost; when it grows, none are added.
    """

    __slots__ = ("_interval_s", "_refilled_ms", "_tokens", "share")

    def __init__(self, share: float, interval_ms: float, now_ms: float) -> None:
        self.share = share
        self._interval_s = interval_ms / 1000
        self._tokens = self.capacity
        self._refilled_ms = now_ms

    @property
    def capacity(self) -> float:
        """The most tokens: the bytes of one burst."""
        return self.share * self._interval_s

    def set_share(self, share: float, now_ms: float) -> None:
        """Refill at another rate from now on."""
        tokens = self.refill(now_ms)
        self.share = share
        self._tokens = min(tokens, self.capacity)

    def refill(self, now_ms: float) -> float:
        """Return the tokens at this moment, below 0 if the bucket is overdrawn."""
        elapsed_ms, self._refilled_ms = max(now_ms - self._refilled_ms, 0), now_ms
        self._tokens = min(self._tokens + self.share * elapsed_ms / 1000, self.capacity)
        return self._tokens

    def take(self, amount: float, now_ms: float) -> float:
        """Take tokens, whether there are any or not; return those that are left."""
        self._tokens = self.refill(now_ms) - amount
        return self._tokens

    def find_wait_ms(self, now_ms: float) -> int:
        """Return the milliseconds until no token is missing, 0 if none is."""
        tokens = self.refill(now_ms)
        if tokens >= 0:
            return 0
        return MAX_WAIT_MS if not self.share else min(ceil(-tokens / self.share * 1000), MAX_WAIT_MS)
