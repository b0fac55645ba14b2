"""How this process authenticates itself at brokers, read from Kafka's properties: a name and a password, or bearer tokens.

The properties are those of an inter-broker listener, or those of a client that a command is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kafkacompat.config.properties import ConfigError
from kafkacompat.security.sasl.client import ClientLogin
from kafkacompat.security.sasl.mechanism import OAUTHBEARER, PLAIN
from kafkacompat.security.sasl.settings import KAFKAS_OAUTH, MechanismReader
from kafkacompat.security.sasl.token_requests import TokenEndpoint, TokenFile, UnsecuredClaims
from kafkacompat.security.scram import ScramMechanism
from kafkacompat.security.tls.settings import JKS, STORE_TYPES, StoreSettings

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

LOGIN_MECHANISMS = (PLAIN, *(mechanism.sasl_name for mechanism in ScramMechanism), OAUTHBEARER)
"""The mechanisms by which this process can authenticate itself."""
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
CALLBACK_HANDLER = "sasl.login.callback.handler.class"
RETRIEVER, VALIDATOR = "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"
SECURED_HANDLERS = (
    f"{KAFKAS_OAUTH}OAuthBearerLoginCallbackHandler",
    f"{KAFKAS_OAUTH}secured.OAuthBearerLoginCallbackHandler",
)
UNSECURED_HANDLER = f"{KAFKAS_OAUTH}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_RETRIEVERS = tuple(f"{KAFKAS_OAUTH}{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File"))
_VALIDATORS = tuple(f"{KAFKAS_OAUTH}{name}JwtValidator" for name in ("Default", "Client", "Broker"))
_EXTENSION_NAME, _EXTENSION_VALUE = re.compile(r"[A-Za-z]+"), re.compile(r"[\x21-\x7e \t\r\n]+")
_UNSECURED = "unsecuredLogin"


@dataclass(frozen=True)
class RefreshRules:
    """When a token is renewed, as Kafka's ``sasl.login.refresh`` properties say; shares of its lifetime, and seconds."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_s: int = 60
    buffer_s: int = 300


@dataclass(frozen=True)
class BearerSettings:
    """Where bearer tokens come from, and when they are renewed; ``extensions`` are sent along (KIP-342)."""

    origin: TokenEndpoint | TokenFile | UnsecuredClaims
    subject_claim: str = "sub"
    extensions: Mapping[str, str] = field(default_factory=dict)
    refresh: RefreshRules = RefreshRules()
    backoff_s: float = 0.1
    max_backoff_s: float = 10.0


def read_login_settings(
    config: BrokerConfig, listener_name: str | None, mechanism: str
) -> ClientLogin | BearerSettings:
    """Read the properties of a listener, or with None those that are for no listener; raises ConfigError."""
    if mechanism not in LOGIN_MECHANISMS:
        raise ConfigError(f"the SASL mechanism {mechanism} is not served: set one of {', '.join(LOGIN_MECHANISMS)}")
    reader = MechanismReader(config, listener_name)
    if mechanism == OAUTHBEARER:
        return _BearerReader(reader).read()
    name, login = reader.find_login(mechanism)
    if login is None or not {"username", "password"} <= set(login.options):
        raise ConfigError(
            f"{name} has no username and password for a login by {mechanism}: add them as options of the login module"
        )
    by_token = mechanism != PLAIN and login.options.get("tokenauth", "").strip().lower() == "true"
    return ClientLogin(mechanism, login.options["username"], login.options["password"], by_token)


class _BearerReader:
    """Reads the properties of OAUTHBEARER."""

    def __init__(self, reader: MechanismReader) -> None:
        self._reader = reader
        self._jaas_name, login = reader.find_login(OAUTHBEARER)
        self._options: Mapping[str, str] = {} if login is None else login.options

    def read(self) -> BearerSettings:
        handler_name, handler = self._find_class(CALLBACK_HANDLER, (*SECURED_HANDLERS, UNSECURED_HANDLER))
        for name, classes in ((RETRIEVER, _RETRIEVERS), (VALIDATOR, _VALIDATORS)):
            self._find_class(name, classes)
        url_name, url = self._reader.find(OAUTHBEARER, TOKEN_URL)
        if url is not None and handler != UNSECURED_HANDLER:
            return self._build(self._read_endpoint(url_name, url.strip()), self._value("sub.claim.name"), "extension_")
        if handler in SECURED_HANDLERS:
            raise ConfigError(f"{handler_name}={handler} needs {TOKEN_URL}, which is not set")
        if not any(name.startswith(_UNSECURED) for name in self._options):
            raise ConfigError(
                f"there are no tokens for a login by OAUTHBEARER: set {TOKEN_URL}, or, for trials only, make unsecured tokens"
                f' by {_UNSECURED}StringClaim_sub="..." in {self._jaas_name}'
            )
        subject_claim = self._options.get(f"{_UNSECURED}PrincipalClaimName", "").strip() or "sub"
        return self._build(self._read_unsecured(), subject_claim, f"{_UNSECURED}Extension_")

    def _find_class(self, name: str, served: tuple[str, ...]) -> tuple[str, str | None]:
        """Return the name and the value of a property that names one of Kafka's classes; raises ConfigError for others."""
        given, value = self._reader.find(OAUTHBEARER, name)
        value = None if value is None else value.strip()
        if value is not None and value not in served:
            raise ConfigError(f"{given}={value} is not served, as no class is loaded by its name: it takes {served[0]}")
        return given, value

    def _value(self, rest: str) -> Any:
        return self._reader.read(OAUTHBEARER, f"sasl.oauthbearer.{rest}")

    def _build(
        self, origin: TokenEndpoint | TokenFile | UnsecuredClaims, subject_claim: str, extension_prefix: str
    ) -> BearerSettings:
        def read(rest: str) -> Any:
            return self._reader.read(OAUTHBEARER, f"sasl.login.{rest}")

        rules = RefreshRules(
            read("refresh.window.factor"),
            read("refresh.window.jitter"),
            read("refresh.min.period.seconds"),
            read("refresh.buffer.seconds"),
        )
        backoff_s, max_backoff_s = read("retry.backoff.ms") / 1000, read("retry.backoff.max.ms") / 1000
        extensions = self._read_extensions(extension_prefix)
        return BearerSettings(origin, subject_claim, extensions, rules, backoff_s, max_backoff_s)

    def _read_extensions(self, prefix: str) -> Mapping[str, str]:
        named = {name.removeprefix(prefix): value for name, value in self._options.items() if name.startswith(prefix)}
        for name, value in named.items():
            if name == "auth" or not _EXTENSION_NAME.fullmatch(name) or not _EXTENSION_VALUE.fullmatch(value):
                raise ConfigError(
                    f"{self._jaas_name} has the option {prefix}{name}, which is no SASL extension: its name takes letters"
                    " other than auth, its value printable ASCII characters"
                )
        return named

    # Tokens of a provider

    def _read_endpoint(self, name: str, url: str) -> TokenEndpoint | TokenFile:
        parts = urlsplit(url)
        if parts.scheme == "file" and parts.path:
            return TokenFile(unquote(parts.path))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{name}={url} is not valid: it takes a URL of file, http, https")
        if parts.username or parts.password:
            raise ConfigError(f"{name} is not valid: it takes a URL without a user and a password")
        connect_ms, read_ms = (
            self._reader.read(OAUTHBEARER, f"sasl.login.{kind}.timeout.ms") for kind in ("connect", "read")
        )
        defaults = TokenEndpoint("", "", "")
        return TokenEndpoint(
            url,
            self._read_credential("client.credentials.client.id", "clientId"),
            self._read_credential("client.credentials.client.secret", "clientSecret"),
            self._value("scope") or self._options.get("scope", "").strip() or None,
            defaults.connect_timeout_s if connect_ms is None else connect_ms / 1000,
            defaults.read_timeout_s if read_ms is None else read_ms / 1000,
            self._read_trust_store(),
        )

    def _read_credential(self, rest: str, option: str) -> str:
        """Return the value of a property (KIP-1139), else that of an option of the login module."""
        value = self._value(rest) or self._options.get(option, "").strip()
        if not value:
            raise ConfigError(
                f"sasl.oauthbearer.{rest} is not set, and {self._jaas_name} has no option {option}: the identity provider"
                f" at {TOKEN_URL} issues tokens for both only"
            )
        assert isinstance(value, str)
        return value

    def _read_trust_store(self) -> StoreSettings | None:
        """Return the trust store for the provider's certificate, which options of the login module name as in Kafka."""
        options = {name: value for name, value in self._options.items() if name.startswith("ssl.")}
        if any(name.startswith("ssl.key") for name in options):
            raise ConfigError(f"{self._jaas_name} has a key store for the identity provider, which is not served")
        kind = options.get("ssl.truststore.type", JKS).strip().upper()
        if kind not in STORE_TYPES:
            raise ConfigError(f"{self._jaas_name} has an ssl.truststore.type other than {', '.join(STORE_TYPES)}")
        location = options.get("ssl.truststore.location")
        certificates = options.get("ssl.truststore.certificates")
        if location is None and certificates is None:
            return None
        password = options.get("ssl.truststore.password")
        return StoreSettings("ssl.truststore", kind, location, password, certificates=certificates)

    # Unsecured tokens

    def _read_unsecured(self) -> UnsecuredClaims:
        claims: dict[str, Any] = {}
        for name, value in self._options.items():
            for prefix, convert in _CLAIM_KINDS.items():
                if name.startswith(prefix) and name != prefix:
                    claims[self._check_claim(name.removeprefix(prefix))] = self._convert(name, convert, value)
        lifetime = self._options.get(f"{_UNSECURED}LifetimeSeconds", "3600").strip()
        return UnsecuredClaims(claims, self._convert(f"{_UNSECURED}LifetimeSeconds", int, lifetime))

    def _check_claim(self, claim: str) -> str:
        if claim in ("iat", "exp"):
            raise ConfigError(
                f"{self._jaas_name} sets the claim {claim} of unsecured tokens, which this process computes"
            )
        return claim

    def _convert(self, name: str, convert: Callable[[str], Any], value: str) -> Any:
        try:
            return convert(value)
        except ValueError:
            raise ConfigError(f"{self._jaas_name} has a value of {name} that is no number") from None


def _split_list(text: str) -> list[str]:
    """Split a list whose first character separates its items."""
    return text[1:].split(text[0]) if len(text) > 1 else []


_CLAIM_KINDS: Mapping[str, Callable[[str], Any]] = {
    f"{_UNSECURED}StringClaim_": str,
    f"{_UNSECURED}NumberClaim_": float,
    f"{_UNSECURED}ListClaim_": _split_list,
}
