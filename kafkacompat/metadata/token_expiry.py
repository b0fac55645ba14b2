"""Removing expired delegation tokens, every delegation.token.expiry.check.interval.ms, on the broker that is the controller."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kafkacompat.metadata.token_changes import remove_expired_tokens
from kafkacompat.timers import Clock, PeriodicCall, now_ms
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.administration import Administration

log = logging.getLogger(__name__)


class TokenExpiry:
    """Checks the tokens at intervals, if there can be any."""

    def __init__(self, config: BrokerConfig, controller: Administration, clock: Clock) -> None:
        self._interval_s = config.int("delegation.token.expiry.check.interval.ms") / 1000
        self._is_enabled = bool(config.optional_string("delegation.token.secret.key"))
        self._controller = controller
        self._clock = clock
        self._checks = PeriodicCall(clock, self._check)

    def start(self) -> None:
        """Begin."""
        if self._is_enabled:
            self._checks.start(self._interval_s, now=False)

    def stop(self) -> None:
        """End."""
        if self._checks.running:
            self._checks.stop()

    def _check(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._remove_expired())

    async def _remove_expired(self) -> None:
        try:
            removed = await self._controller.change_tokens(
                lambda draft, _: remove_expired_tokens(draft, now_ms(self._clock))
            )
        except KafkaError as problem:
            if problem.code != ErrorCode.NOT_CONTROLLER:
                log.error("Cannot remove expired delegation tokens: %s", problem)
            return
        if removed:
            log.info("Removed %d expired delegation tokens", len(removed))
