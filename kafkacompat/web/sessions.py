"""The sessions of users who have logged in: a random id in a signed cookie, and the user in memory.

The signature keeps guessed ids out of the look-up. Sessions end with the broker, after `LIFETIME_S`, when their user logs out, and when
the user's token or password is replaced.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kafkacompat.monitoring.administration.access import HttpLogin
    from kafkacompat.timers import Clock

LIFETIME_S = 8 * 3600
MAX_SESSIONS = 1000
ID_BYTES = 16
COOKIE = "kafkacompat_ui"
"""The name of the cookie, before the id of the broker."""


class WebSession(NamedTuple):
    """A user who has logged in; ``instance`` is "" for a user of the cluster, ``ends_s`` the clock's seconds at the end."""

    login: HttpLogin
    instance: str
    ends_s: float


class Sessions:
    """The sessions of one broker; *draw_bytes* returns random bytes that nobody can guess."""

    def __init__(self, clock: Clock, draw_bytes: Callable[[int], bytes]) -> None:
        self._clock = clock
        self._draw_bytes = draw_bytes
        self._key = draw_bytes(32)
        self._by_id: dict[str, WebSession] = {}

    def begin(self, login: HttpLogin, instance: str = "") -> str:
        """Begin a session and return the value of its cookie. If there are too many sessions, the oldest one ends."""
        if len(self._by_id) >= MAX_SESSIONS:
            del self._by_id[next(iter(self._by_id))]
        session_id = self._draw_bytes(ID_BYTES).hex()
        self._by_id[session_id] = WebSession(login, instance, self._clock.seconds() + LIFETIME_S)
        return f"{session_id}.{self._sign('session', session_id)}"

    def find(self, cookie: str) -> WebSession | None:
        """Return the session of a cookie; None if there is none."""
        session_id = self._read(cookie)
        session = None if session_id is None else self._by_id.get(session_id)
        if session is not None and self._clock.seconds() >= session.ends_s:
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        """End the session of a cookie, if there is one."""
        session_id = self._read(cookie)
        if session_id is not None:
            self._by_id.pop(session_id, None)

    def make_form_token(self, cookie: str) -> str:
        """Return the token that forms of a session carry: other sites cannot read it."""
        return self._sign("form", cookie)

    def is_form_token(self, cookie: str, token: str) -> bool:
        """Return whether a form of this session carries this token."""
        return hmac.compare_digest(self.make_form_token(cookie).encode(), token.encode(errors="replace"))

    def _read(self, cookie: str) -> str | None:
        session_id, _, signature = cookie.partition(".")
        signed = self._sign("session", session_id)
        return session_id if hmac.compare_digest(signed.encode(), signature.encode(errors="replace")) else None

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(errors="replace"), "sha256").hexdigest()
