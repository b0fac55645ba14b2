"""Authentication on the listeners with SASL: the mechanisms of each, by the configuration in effect, and the credentials they read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.config import ConfigError
from kafkacompat.metadata.client_entities import ClientConfig, make_user_entity
from kafkacompat.security.sasl.exchange import Offer, SaslExchange
from kafkacompat.security.sasl.mechanism import OAUTHBEARER, PLAIN, ServerMechanism
from kafkacompat.security.sasl.oauthbearer import OAuthBearerServer, TokenCheck
from kafkacompat.security.sasl.plain import PlainServer, PlainUsers
from kafkacompat.security.sasl.scram import ScramServer, ScramStore, TokenLogin
from kafkacompat.security.sasl.settings import JwksSettings, SaslSettings, TokenRules, read_sasl_settings
from kafkacompat.security.sasl.unsecured_tokens import UnsecuredRules, check_unsecured_token
from kafkacompat.security.scram import SCRAM_MECHANISMS, ScramCredential, ScramMechanism, draw_nonce
from kafkacompat.security.token_logins import TokenLogins
from kafkacompat.server.sasl_gate import SaslGate
from kafkacompat.timers import Clock, now_ms, steady_ms

if TYPE_CHECKING:
    from random import Random

    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.effective import EffectiveConfig
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.security.sasl.jwks import Fetch, KeySource

log = logging.getLogger(__name__)

_SALT_BYTES = 16


class _Listener(NamedTuple):
    """What a configuration makes of a listener."""

    config: BrokerConfig
    offer: Offer
    max_receive_bytes: int


class Authentication:
    """Begins the authentications of connections.

    ``fetch`` returns the function that fetches URLs; it is called only if a listener needs it. Call `stop` at the end.
    """

    def __init__(
        self,
        effective: EffectiveConfig,
        metadata: ImageHolder,
        clock: Clock,
        rng: Random,
        make_fetch: Callable[[], Fetch],
    ) -> None:
        self._effective = effective
        self._metadata = metadata
        self._clock = clock
        self._rng = rng
        self._make_fetch = make_fetch
        self._listeners: dict[str, _Listener] = {}
        self._key_sources: dict[str, KeySource] = {}
        self._tokens: TokenLogins | None = None
        self._now_ms = partial(now_ms, clock)
        self._steady_ms = partial(steady_ms, clock)
        secret_key = effective.config.optional_string("delegation.token.secret.key")
        if secret_key:
            self._tokens = TokenLogins(
                secret_key, lambda: metadata.image.tokens, lambda: rng.randbytes(_SALT_BYTES), self._now_ms
            )
        self._scram = ScramStore(self._find_user, self._find_token, partial(draw_nonce, rng), rng.randbytes(32))

    def prepare(self, listener_name: str) -> None:
        """Read the properties of a listener; raises ConfigError."""
        config = self._effective.config
        settings = read_sasl_settings(config, listener_name)
        offer = Offer(self._start_mechanisms(settings), settings.max_session_ms)
        self._listeners[listener_name] = _Listener(config, offer, settings.max_receive_bytes)

    def admit(self, listener_name: str) -> SaslGate:
        """Begin the authentication of a new connection."""
        config = self._effective.config
        if self._listeners[listener_name].config is not config:
            self._refresh(listener_name)
        listener = self._listeners[listener_name]
        exchange = SaslExchange(listener.offer, self._steady_ms, self._now_ms)
        delay_s = config.int("connection.failed.authentication.delay.ms") / 1000
        return SaslGate(exchange, listener.max_receive_bytes, delay_s)

    def _refresh(self, listener_name: str) -> None:
        """Apply a changed configuration; one that cannot be used leaves the listener as it is."""
        try:
            self.prepare(listener_name)
        except ConfigError as problem:
            log.error("The listener %s keeps its last SASL settings: %s", listener_name, problem)
            self._listeners[listener_name] = self._listeners[listener_name]._replace(config=self._effective.config)

    def stop(self) -> None:
        """Fetch no more keys."""
        for source in self._key_sources.values():
            source.stop()

    # Mechanisms

    def _start_mechanisms(self, settings: SaslSettings) -> Mapping[str, Callable[[], ServerMechanism]]:
        starts: dict[str, Callable[[], ServerMechanism]] = {}
        for name in settings.mechanisms:
            if name in SCRAM_MECHANISMS:
                starts[name] = partial(ScramServer, SCRAM_MECHANISMS[name], self._scram)
            elif name == PLAIN:
                starts[name] = partial(PlainServer, settings.users or PlainUsers({}))
            elif name == OAUTHBEARER and settings.oauth is not None:
                starts[name] = partial(OAuthBearerServer, self._build_token_check(settings.oauth))
        return starts

    def _build_token_check(self, rules: TokenRules) -> TokenCheck:
        if isinstance(rules, UnsecuredRules):
            return partial(check_unsecured_token, rules=rules, now_ms=self._now_ms)
        # A broker without such a listener does not pay for the library.
        from kafkacompat.security.sasl.signed_tokens import SignedTokens

        source = self._find_keys(rules.jwks)
        return SignedTokens(rules, source.current, self._now_ms, source.note_unknown).check

    def _find_keys(self, settings: JwksSettings) -> KeySource:
        from kafkacompat.security.sasl.jwks import FetchedKeys, FileKeys

        url = settings.url
        if url not in self._key_sources:
            source: KeySource
            if url.startswith("file:"):
                source = FileKeys(url)
            else:
                source = FetchedKeys(settings, self._make_fetch(), self._clock, self._rng)
            self._key_sources[url] = source
            source.start()
        return self._key_sources[url]

    # Credentials

    def _find_user(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        config = self._metadata.image.clients.get(make_user_entity(user), ClientConfig())
        return config.credentials.get(mechanism)

    def _find_token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        return None if self._tokens is None else self._tokens.find(mechanism, token_id)
