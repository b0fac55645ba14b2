"""The SASL properties of one listener, read and checked: mechanisms, users, rules for tokens, lengths of sessions.

As in Kafka a property may be set for a mechanism of a listener (listener.name.NAME.plain.sasl.jaas.config), for a listener, or
for all. A ``sasl.jaas.config`` without a prefix takes the place of the file that a JVM is given for its login modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kafkacompat.config.listeners import listener_property_name
from kafkacompat.config.properties import ConfigError
from kafkacompat.security.jaas import JaasError, LoginEntry, find_login, parse_jaas
from kafkacompat.security.sasl.mechanism import OAUTHBEARER, PLAIN
from kafkacompat.security.sasl.plain import PlainUsers
from kafkacompat.security.sasl.unsecured_tokens import UnsecuredRules

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

JAAS_CONFIG = "sasl.jaas.config"
MAX_REAUTH = "connections.max.reauth.ms"
CALLBACK_HANDLER = "sasl.server.callback.handler.class"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
URL_SCHEMES = ("file", "http", "https")
MIN_REFRESH_S, MIN_BACKOFF_S = 1.0, 0.01
"""Shorter times would keep the broker busy with fetches."""

KAFKAS_OAUTH = "org.apache.kafka.common.security.oauthbearer."
SECURED_HANDLERS = (
    f"{KAFKAS_OAUTH}OAuthBearerValidatorCallbackHandler",
    f"{KAFKAS_OAUTH}secured.OAuthBearerValidatorCallbackHandler",
)
"""The names, in Kafka's releases, of the class that checks signed tokens."""


@dataclass(frozen=True)
class JwksSettings:
    """Where the keys of the identity provider are, and how often they are read; times in seconds."""

    url: str
    refresh_s: float
    backoff_s: float
    max_backoff_s: float


@dataclass(frozen=True)
class SignedRules:
    """What a signed token must claim (the properties sasl.oauthbearer...), and the keys that its signature is checked with."""

    jwks: JwksSettings
    audience: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"


TokenRules = UnsecuredRules | SignedRules
"""How bearer tokens are checked."""


@dataclass(frozen=True)
class SaslSettings:
    """What a listener offers; ``max_session_ms`` by mechanism, 0 for no limit."""

    mechanisms: tuple[str, ...]
    users: PlainUsers | None
    oauth: TokenRules | None
    max_session_ms: Mapping[str, int]
    max_receive_bytes: int


def read_sasl_settings(config: BrokerConfig, listener_name: str) -> SaslSettings:
    """Read the properties of a listener; raises ConfigError."""
    mechanisms = config.listener_value(listener_name, "sasl.enabled.mechanisms")
    max_receive_bytes = config.listener_value(listener_name, "sasl.server.max.receive.size")
    assert isinstance(mechanisms, tuple) and isinstance(max_receive_bytes, int)
    if max_receive_bytes < 0:
        max_receive_bytes = config.int("socket.request.max.bytes")
    reader = MechanismReader(config, listener_name)
    for mechanism in mechanisms:
        if mechanism != OAUTHBEARER:
            reader.refuse_handler(mechanism)
    return SaslSettings(
        mechanisms,
        reader.read_users() if PLAIN in mechanisms else None,
        reader.read_oauth() if OAUTHBEARER in mechanisms else None,
        {mechanism: reader.read_max_session_ms(mechanism) for mechanism in mechanisms},
        max_receive_bytes,
    )


class MechanismReader:
    """Reads the properties that may be set for one mechanism of a listener; without a listener, those for no listener."""

    def __init__(self, config: BrokerConfig, listener_name: str | None) -> None:
        self._config = config
        self._listener_name = listener_name

    def find(self, mechanism: str, name: str) -> tuple[str, str | None]:
        """Return the most specific name that is set, and its text; the first name and None if none is."""
        names, given = self._list_names(mechanism, name), self._config.given
        return next(((key, given[key]) for key in names if key in given), (names[0], None))

    def _list_names(self, mechanism: str, name: str) -> list[str]:
        """Return the names that set a property for the mechanism, the most specific first."""
        if self._listener_name is None:
            return [name]
        own = (f"{mechanism.lower()}.{name}", name)
        return [*(listener_property_name(self._listener_name, prefixed) for prefixed in own), name]

    def find_login(self, mechanism: str) -> tuple[str, LoginEntry | None]:
        """Return the name of the property with the login modules, and the module of a mechanism. Raises ConfigError."""
        name, text = self.find(mechanism, JAAS_CONFIG)
        if text is None:
            return name, None
        try:
            return name, find_login(parse_jaas(text), mechanism.partition("-")[0])
        except JaasError as problem:
            raise ConfigError(f"{name}=... is not valid: {problem}") from None

    def read_users(self) -> PlainUsers:
        name, login = self.find_login(PLAIN)
        users = PlainUsers({} if login is None else login.options)
        if not users:
            words = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="...";'
            raise ConfigError(f"{name} names no users of PLAIN: set it as {words}")
        return users

    def read(self, mechanism: str, name: str) -> Any:
        """Return the parsed value of a property, the default if it is not set. Raises ConfigError."""
        given, text = self.find(mechanism, name)
        if text is None:
            return self._config.value(name)
        row = self._config.row(name)
        assert row is not None
        return row._replace(name=given).parse(text)

    def read_max_session_ms(self, mechanism: str) -> int:
        value = self.read(mechanism, MAX_REAUTH)
        assert isinstance(value, int)
        return value

    def read_oauth(self) -> TokenRules:
        handler_name, handler = self.find(OAUTHBEARER, CALLBACK_HANDLER)
        if handler is not None and handler.strip() not in SECURED_HANDLERS:
            raise ConfigError(
                f"{handler_name}={handler} is not served, as no class is loaded by its name: it takes {SECURED_HANDLERS[0]}"
            )
        url_name, url = self.find(OAUTHBEARER, JWKS_URL)
        if url is not None:
            return self._read_signed(url_name, url.strip())
        jaas_name, login = self.find_login(OAUTHBEARER)
        try:
            unsecured = None if login is None or handler is not None else UnsecuredRules.read(login.options)
        except JaasError as problem:
            raise ConfigError(f"{jaas_name}=... is not valid: {problem}") from None
        if unsecured is None:
            raise ConfigError(
                f"OAUTHBEARER of the listener {self._listener_name} has no keys to check tokens with: set {JWKS_URL},"
                f' or, for trials only, allow unsecured tokens by unsecuredValidatorPrincipalClaimName="sub" in {jaas_name}'
            )
        return unsecured

    def _read_signed(self, name: str, url: str) -> SignedRules:
        parts = urlsplit(url)
        if parts.scheme not in URL_SCHEMES or not (parts.path if parts.scheme == "file" else parts.hostname):
            raise ConfigError(f"{name}={url} is not valid: it takes a URL of {', '.join(URL_SCHEMES)}")
        if parts.username or parts.password:
            raise ConfigError(f"{name} is not valid: it takes a URL without a user and a password")

        def read(rest: str) -> Any:
            return self.read(OAUTHBEARER, f"sasl.oauthbearer.{rest}")

        jwks = JwksSettings(
            url,
            max(read("jwks.endpoint.refresh.ms") / 1000, MIN_REFRESH_S),
            max(read("jwks.endpoint.retry.backoff.ms") / 1000, MIN_BACKOFF_S),
            max(read("jwks.endpoint.retry.backoff.max.ms") / 1000, MIN_BACKOFF_S),
        )
        return SignedRules(
            jwks,
            tuple(read("expected.audience") or ()),
            read("expected.issuer"),
            read("clock.skew.seconds"),
            read("scope.claim.name"),
            read("sub.claim.name"),
        )

    def refuse_handler(self, mechanism: str) -> None:
        """Raise ConfigError for a class that would check the credentials of a mechanism other than OAUTHBEARER.

        Kafka's own class for tokens may be named for all mechanisms of a listener.
        """
        name, handler = self.find(mechanism, CALLBACK_HANDLER)
        is_for_mechanism = name == self._list_names(mechanism, CALLBACK_HANDLER)[0]
        if handler is not None and (is_for_mechanism or handler.strip() not in SECURED_HANDLERS):
            raise ConfigError(f"{name}={handler} is not served, as no class is loaded by its name: remove it")
