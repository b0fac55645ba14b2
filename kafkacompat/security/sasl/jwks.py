"""The public keys of an identity provider: read from a file, or fetched by HTTP and refreshed.

A thin shell: the clock and the function that fetches are passed in, and the keys are parsed by `signed_tokens`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from random import Random
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from twisted.internet.defer import Deferred

from kafkacompat.backoff import Backoff
from kafkacompat.security.sasl.settings import JwksSettings
from kafkacompat.security.sasl.signed_tokens import KeySet
from kafkacompat.timers import Clock, DelayedCall

log = logging.getLogger(__name__)

MAX_JWKS_BYTES = 1024 * 1024
MIN_EXPEDITED_S = 5.0
"""Tokens with unknown keys lead to at most one fetch in this time, so that no client can make the broker fetch at will."""
SAME_KEY_S = 60.0
"""Tokens with the same unknown key lead to at most one fetch in this time."""
MAX_UNKNOWN_KEYS = 100

Fetch = Callable[[str], "Deferred[bytes]"]
"""Fetches a URL; fails with any exception."""


class KeySource(Protocol):
    """Where the keys come from."""

    def current(self) -> KeySet | None:
        """Return the keys known now; None before the first success."""

    def note_unknown(self, key_id: str) -> None:
        """Learn that a token names a key that is not known."""

    def start(self) -> None:
        """Begin to read."""

    def stop(self) -> None:
        """Read no more."""


class FileKeys:
    """Keys in a local file, which is read again when it has changed; a file that cannot be read leaves the keys as they are."""

    def __init__(self, url: str) -> None:
        self._path = unquote(urlsplit(url).path)
        self._stamp: tuple[int, int, int] | None = None
        self._keys: KeySet | None = None
        self._problem = ""

    def current(self) -> KeySet | None:
        """See KeySource.current."""
        try:
            status = os.stat(self._path)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self._stamp:
                self._stamp = stamp
                self._keys = self._read()
                self._problem = ""
        except (OSError, ValueError) as problem:
            # Each login looks at the file.
            if str(problem) != self._problem:
                self._problem = str(problem)
                log.error("Cannot read the keys of tokens in %s: %s", self._path, problem)
        return self._keys

    def _read(self) -> KeySet:
        with open(self._path, "rb") as file:
            data = file.read(MAX_JWKS_BYTES + 1)
        if len(data) > MAX_JWKS_BYTES:
            raise ValueError(f"it has more than {MAX_JWKS_BYTES} bytes")
        return KeySet.parse(data)

    def note_unknown(self, key_id: str) -> None:
        """See KeySource.note_unknown: the file is checked at each use."""

    def start(self) -> None:
        """See KeySource.start."""
        self.current()

    def stop(self) -> None:
        """See KeySource.stop."""


class FetchedKeys:
    """Keys behind a URL: fetched at the start, each refresh interval, and early for an unknown key.

    After a failure the next attempt follows after a back-off that doubles up to its limit; the known keys stay in effect.
    """

    def __init__(self, settings: JwksSettings, fetch: Fetch, clock: Clock, rng: Random) -> None:
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._keys: KeySet | None = None
        self._backoff = Backoff(settings.backoff_s, settings.max_backoff_s, rng)
        self._fetching: Deferred[Any] | None = None
        self._next: DelayedCall | None = None
        self._expedited_at = -MIN_EXPEDITED_S
        self._unknown: dict[str, float] = {}
        self._is_stopped = False

    def current(self) -> KeySet | None:
        """See KeySource.current."""
        return self._keys

    def note_unknown(self, key_id: str) -> None:
        """See KeySource.note_unknown."""
        now = self._clock.seconds()
        if self._fetching is not None or self._is_stopped or now - self._expedited_at < MIN_EXPEDITED_S:
            return
        if now - self._unknown.get(key_id, -SAME_KEY_S) < SAME_KEY_S:
            return
        if len(self._unknown) >= MAX_UNKNOWN_KEYS:
            self._unknown.clear()
        self._expedited_at = self._unknown[key_id] = now
        self._begin()

    def start(self) -> None:
        """See KeySource.start."""
        self._begin()

    def stop(self) -> None:
        """See KeySource.stop."""
        self._is_stopped = True
        self._cancel_next()
        if self._fetching is not None:
            self._fetching.cancel()

    def _begin(self) -> None:
        self._cancel_next()
        fetching = self._fetching = self._fetch(self._settings.url)
        fetching.addCallbacks(self._take).addErrback(self._report).addCallback(self._schedule)

    def _take(self, data: bytes) -> float:
        """Take fetched keys over; return when to fetch them again."""
        self._keys = KeySet.parse(data)
        self._backoff.reset()
        return self._settings.refresh_s

    def _report(self, failure: object) -> float:
        """Log a failure; return when to try again."""
        if not self._is_stopped:
            log.warning(
                "Cannot fetch the keys of tokens from %s: %s", self._settings.url, getattr(failure, "value", "")
            )
        return self._backoff.next_s()

    def _schedule(self, wait_s: float) -> None:
        self._fetching = None
        if not self._is_stopped:
            self._next = self._clock.callLater(wait_s, self._begin)

    def _cancel_next(self) -> None:
        if self._next is not None and self._next.active():
            self._next.cancel()
        self._next = None
