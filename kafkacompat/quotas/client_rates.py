"""The rates of the clients that have a limit: one for each scope, and a bound on their number."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar

from kafkacompat.metrics.throttling import OTHERS, ClientNames
from kafkacompat.quotas.rates import QuotaWindows, SampledRate, TokenBucket

MOST_RATES = 10_000
"""Most rates of one kind: a client may invent client ids or addresses, and each has a rate of its own."""
MAX_KEY_LENGTH = 256
"""A longer key, such as a client id of 32 KiB, is kept as its hash."""


class LimitedUse(Protocol):
    """What the clients of one scope have used, and their limit. ``scope`` names them; it is OTHERS for a long name."""

    limit: float
    scope: ClientNames

    @property
    def last_used_ms(self) -> int: ...

    def is_idle(self, now_ms: int) -> bool:
        """Return whether a new object would allow as much as this one."""


class LimitedRate:
    """A rate with its limit."""

    __slots__ = ("_rate", "limit", "longest_throttle_ms", "scope")

    def __init__(self, windows: QuotaWindows, longest_throttle_ms: int | None = None) -> None:
        self.limit = 0.0
        self.scope: ClientNames = OTHERS
        self._rate = SampledRate(windows)
        self.longest_throttle_ms = longest_throttle_ms

    @property
    def last_used_ms(self) -> int:
        """The time of the last use."""
        return self._rate.last_used_ms

    def is_idle(self, now_ms: int) -> bool:
        """Return whether nothing is left of what was used."""
        return self._rate.is_idle(now_ms)

    def record(self, amount: float, now_ms: int) -> int:
        """Count a use, and return the throttle time in milliseconds, 0 within the limit."""
        self._rate.record(amount, now_ms)
        throttle_ms = self._rate.find_throttle_ms(self.limit, now_ms)
        return throttle_ms if self.longest_throttle_ms is None else min(throttle_ms, self.longest_throttle_ms)

    def record_unchecked(self, amount: float, now_ms: int) -> None:
        """Count a use that the next check sees; a negative amount takes a use back."""
        self._rate.record(amount, now_ms)

    def measure(self, now_ms: int) -> float:
        """Return the units per second."""
        return self._rate.measure(now_ms)


class LimitedBucket:
    """A token bucket with its limit."""

    __slots__ = ("_bucket", "limit", "scope")

    def __init__(self, windows: QuotaWindows) -> None:
        self.limit = 0.0
        self.scope: ClientNames = OTHERS
        self._bucket = TokenBucket(windows)

    @property
    def last_used_ms(self) -> int:
        """The time of the last use."""
        return self._bucket.last_used_ms

    def is_idle(self, now_ms: int) -> bool:
        """Return whether the bucket is full."""
        return self._bucket.is_full(self.limit, now_ms)

    def record(self, amount: float, now_ms: int) -> None:
        """Take tokens, whether there are any or not."""
        self._bucket.record(self.limit, amount, now_ms)

    def find_throttle_ms(self, now_ms: int) -> int:
        """Return the milliseconds until no token is missing."""
        return self._bucket.find_throttle_ms(self.limit, now_ms)


Use = TypeVar("Use", bound=LimitedUse)


class UseTable(Generic[Use]):
    """What each scope has used, at most MOST_RATES of them.

    A scope that has used nothing for the span of the windows is forgotten when room is needed; if too few are idle, those whose last
    use is the longest ago follow. ``on_forgotten`` is called then, as others may hold objects that are not in the table any more.
    """

    def __init__(self, make: Callable[[], Use], on_forgotten: Callable[[], None] = lambda: None) -> None:
        self._make = make
        self._on_forgotten = on_forgotten
        self._uses: dict[object, Use] = {}

    def __len__(self) -> int:
        return len(self._uses)

    def find(self, parts: tuple[str, ...], limit: float, now_ms: int) -> Use:
        """Return what a scope has used, under *limit* from now on."""
        key = shorten_key(parts)
        use = self._uses.get(key)
        if use is None:
            if len(self._uses) >= MOST_RATES:
                self._make_room(now_ms)
            use = self._uses[key] = self._make()
            use.scope = parts if key is parts else OTHERS
        use.limit = limit
        return use

    def _make_room(self, now_ms: int) -> None:
        kept = {key: use for key, use in self._uses.items() if not use.is_idle(now_ms)}
        if len(kept) > MOST_RATES // 2:
            newest = sorted(kept, key=lambda key: kept[key].last_used_ms)[-MOST_RATES // 2 :]
            kept = {key: kept[key] for key in newest}
        self._uses = kept
        self._on_forgotten()


def shorten_key(parts: tuple[str, ...]) -> tuple[str, ...] | bytes:
    """Return a key of bounded size for these texts."""
    if sum(map(len, parts)) <= MAX_KEY_LENGTH:
        return parts
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=32).digest()
