"""The client's side of OAUTHBEARER (RFC 7628): tokens that are fetched ahead, and renewed before they expire.

A thin shell: the clock, the random numbers and the function that posts are passed in. The times are those of Kafka's
ExpiringCredentialRefreshingLogin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from kafkacompat.security.sasl.client import BearerClient, ClientMechanism
from kafkacompat.security.sasl.login_settings import BearerSettings, RefreshRules
from kafkacompat.security.sasl.mechanism import OAUTHBEARER, SaslError
from kafkacompat.security.sasl.token_requests import (
    ClientToken,
    TokenEndpoint,
    TokenRequestError,
    parse_client_token,
    read_own_token,
)
from kafkacompat.timers import Clock, DelayedCall, now_ms

log = logging.getLogger(__name__)

RENEWAL_PAUSE_S = 10.0
"""Pause after a renewal that has failed, or has brought a token that has expired."""
MIN_WAIT_S = 1.0
"""The least time between two reads of a file whose token is not renewed."""
MIN_BACKOFF_S = 0.01

Post = Callable[[], "Deferred[tuple[int, bytes]]"]
"""Requests a token; fires with the status and the body of the answer, and fails with any exception if there is none."""


class BearerLogin:
    """A login by the present bearer token, which is renewed in time.

    Call `begin` before the first authentication, and `stop` at the end. ``make_post`` raises ConfigError for an endpoint that
    cannot be reached in the way it is configured.
    """

    mechanism = OAUTHBEARER

    def __init__(
        self, settings: BearerSettings, make_post: Callable[[TokenEndpoint], Post], clock: Clock, rng: Random
    ) -> None:
        self._settings = settings
        self._post = make_post(settings.origin) if isinstance(settings.origin, TokenEndpoint) else None
        self._clock = clock
        self._rng = rng
        self._token: ClientToken | None = None
        self._problem = "none was requested yet"
        self._renewal: DelayedCall | None = None
        self._retrieving: Deferred[None] | None = None
        self._is_stopped = False

    def start(self, new_nonce: Callable[[], str]) -> ClientMechanism:
        """See Login.start."""
        if self._token is None or self._token.expires_at_ms <= now_ms(self._clock):
            raise SaslError(f"there is no valid bearer token: {self._problem}")
        return BearerClient(self._token.text, self._settings.extensions)

    def begin(self) -> Deferred[None]:
        """Retrieve the first token, and renew it from then on; fails with TokenRequestError."""
        self._retrieving = Deferred.fromCoroutine(self._retrieve())
        return self._retrieving.addCallback(lambda _: self._plan_renewal())

    def stop(self) -> None:
        """Retrieve no more tokens."""
        self._is_stopped = True
        if self._renewal is not None and self._renewal.active():
            self._renewal.cancel()
        if self._retrieving is not None:
            self._retrieving.addErrback(lambda _: None)
            self._retrieving.cancel()

    def _plan_renewal(self) -> None:
        assert self._token is not None
        now = now_ms(self._clock)
        renewed_at_ms = find_renewal_ms(self._token, now, self._settings.refresh, self._rng.random())
        self._renew_later(max((renewed_at_ms - now) / 1000, MIN_WAIT_S) if renewed_at_ms > now else RENEWAL_PAUSE_S)

    def _renew_later(self, wait_s: float) -> None:
        self._renewal = self._clock.callLater(wait_s, self._renew)

    def _renew(self) -> None:
        self._retrieving = Deferred.fromCoroutine(self._retrieve())
        self._retrieving.addCallbacks(lambda _: self._plan_renewal(), self._report)

    def _report(self, failure: Any) -> None:
        if not self._is_stopped:
            log.warning("Cannot renew the bearer token of this broker, trying again: %s", failure.value)
            self._renew_later(RENEWAL_PAUSE_S)

    async def _retrieve(self) -> None:
        """Retrieve a token, and repeat what may succeed later, as long as Kafka does; raises TokenRequestError."""
        settings = self._settings
        ends_at = self._clock.seconds() + settings.max_backoff_s
        wait_s = max(settings.backoff_s, MIN_BACKOFF_S)
        while True:
            try:
                self._token = parse_client_token(await self._fetch(), settings.subject_claim)
                self._problem = "it has expired"
                return
            except TokenRequestError as problem:
                self._problem = str(problem)
                left_s = ends_at - self._clock.seconds()
                if problem.is_final or self._is_stopped or left_s <= 0:
                    raise
            await deferLater(self._clock, min(wait_s, left_s))  # type: ignore[arg-type]
            wait_s *= 2

    async def _fetch(self) -> str:
        origin = self._settings.origin
        if not isinstance(origin, TokenEndpoint):
            return read_own_token(origin, now_ms(self._clock))
        assert self._post is not None
        try:
            status, body = await self._post()
        except CancelledError:
            raise
        except Exception as problem:
            words = str(problem) or type(problem).__name__
            raise TokenRequestError(f"{origin.url} does not answer: {words}") from problem
        return origin.read_answer(status, body)


def find_renewal_ms(token: ClientToken, now_ms: int, rules: RefreshRules, chance: float) -> int:
    """Return when a token is to be renewed, in milliseconds since the epoch; *chance* is from 0 to 1.

    A time that has passed means that the token has expired already.
    """
    share = rules.window_factor + rules.window_jitter * chance
    end_ms = token.expires_at_ms
    if now_ms + 1000 * (rules.min_period_s + rules.buffer_s) > end_ms:
        # The token is too short-lived for both margins, which then do not count.
        return now_ms + int((end_ms - now_ms) * share)
    begin_ms = now_ms if token.issued_at_ms is None else token.issued_at_ms
    proposed_ms = begin_ms + int((end_ms - begin_ms) * share)
    return max(min(proposed_ms, end_ms - 1000 * rules.buffer_s), now_ms + 1000 * rules.min_period_s)
