"""Listeners: the addresses where the broker accepts connections, and the addresses that it advertises to clients."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from kafkacompat.config.properties import ConfigError
from kafkacompat.wire.releases import RELEASES

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")
_HTTP_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[0-9a-zA-Z\-._]*):([0-9]{1,5})")
EMULATE_PATTERN = re.compile(r"kafkacompat\.listener\.name\.(.+)\.emulate")
LISTENER_PROPERTY_PATTERN = re.compile(r"listener\.name\.[^.]*\.(.*)")
# Kafka has these per SASL mechanism too: listener.name.<listener>.<mechanism>.<name>.
_OF_MECHANISM = re.compile(
    r".*(sasl\.jaas\.config|sasl\.server\.callback\.handler\.class|connections\.max\.reauth\.ms|sasl\.(?:login|oauthbearer)\.[a-z.]*)"
)
USED_LISTENER_PROPERTIES = (
    "max.connections",
    "max.connection.creation.rate",
    "connections.max.reauth.ms",
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.server.callback.handler.class",
    "sasl.server.max.receive.size",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""The properties that have an effect when they are set for one listener."""
WILDCARD_HOSTS = ("", "0.0.0.0", "::")
LISTENER_PREFIX = "INSTANCE-"
"""Begins the names of the listeners of instances; no other listener has such a name."""
INSTANCE_PREFIXES = (LISTENER_PREFIX, "INSTANCES-")
"""Begin the names of the listeners that instances have."""
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MAX_PORT = 65535


class Listener(NamedTuple):
    """One listener: ``host`` is "" for every address of the machine, ``port`` 0 for a free one.

    ``emulate`` is the release of Apache Kafka that the listener behaves like, or None.
    """

    name: str
    protocol: str
    host: str
    port: int
    emulate: str | None = None

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate themselves by SASL."""
        return self.protocol.startswith("SASL_")

    @property
    def has_tls(self) -> bool:
        """Whether clients connect with TLS."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def entry(self) -> str:
        """The listener as an entry of the property `listeners`."""
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def with_address(self, host: str | None, port: int | None) -> Listener:
        """Return this listener with another address; None keeps the host or the port."""
        return self._replace(
            host=self.host if host is None else host.strip("[]"), port=self.port if port is None else port
        )


def base_property_name(name: str) -> str:
    """Return the property that ``listener.name.<listener>.<property>`` sets for one listener; other names unchanged."""
    match = LISTENER_PROPERTY_PATTERN.fullmatch(name)
    if match is None:
        return name
    of_mechanism = _OF_MECHANISM.fullmatch(match[1])
    return match[1] if of_mechanism is None else of_mechanism[1]


def listener_property_name(listener_name: str, name: str) -> str:
    """Build the name that sets a property for one listener; as in Kafka, only its name in lower case does."""
    return f"listener.name.{listener_name.lower()}.{name}"


def find_settings_name(given: Mapping[str, str], listener: Listener) -> str:
    """Return the name by which an instance's listener has its settings among the *given* properties.

    It is its own name if a property is set for it, else one that all instances' listeners of its protocol share.
    """
    own = listener_property_name(listener.name, "")
    is_own = any(name.startswith(own) for name in given)
    return listener.name if is_own else f"{INSTANCE_PREFIXES[1]}{listener.protocol}"


def parse_protocols(text: str) -> dict[str, str]:
    """Read ``listener.security.protocol.map``: a security protocol for each listener name.

    Raises ConfigError for an entry that is not NAME:PROTOCOL.
    """
    protocols = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or protocol.strip() not in _PROTOCOLS:
            words = f"NAME:PROTOCOL with one of {', '.join(_PROTOCOLS)}"
            raise ConfigError(f"listener.security.protocol.map={text} is not valid at {entry!r}: it takes {words}")
        protocols[name.strip().upper()] = protocol.strip()
    return protocols


def parse_listeners(option: str, entries: Iterable[str], protocols: Mapping[str, str]) -> list[Listener]:
    """Read the listeners given for *option*, with the protocol of each name.

    Raises ConfigError for an entry that is not NAME://host:port, for a name without a protocol, and for a repeated name.
    """
    listeners = [_parse_listener(option, entry, protocols) for entry in entries]
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{option}={','.join(entries)} names {name} twice: give each listener its own name")
    return listeners


def _parse_listener(option: str, entry: str, protocols: Mapping[str, str]) -> Listener:
    match = _LISTENER.fullmatch(entry)
    if match is None or int(match[3]) > MAX_PORT:
        raise ConfigError(f"{option}={entry} is not valid: it takes NAME://host:port with a port of 0 to {MAX_PORT}")
    name = match[1].upper()
    if name.startswith(INSTANCE_PREFIXES):
        raise ConfigError(f"{option}={entry} has a name that belongs to instances: take one without INSTANCE")
    if name not in protocols:
        raise ConfigError(f"{option}={entry} has no protocol: name {name} in listener.security.protocol.map")
    return Listener(name, protocols[name], match[2], int(match[3]))


def parse_http_address(text: str) -> tuple[str, int]:
    """Read kafkacompat.http.listener, host:port with an IPv6 address in brackets; raises ConfigError."""
    match = _HTTP_ADDRESS.fullmatch(text)
    if match is None or int(match[2]) > MAX_PORT:
        takes = f"it takes host:port with a port of 0 to {MAX_PORT}, such as 127.0.0.1:9464"
        raise ConfigError(f"kafkacompat.http.listener={text} is not valid: {takes}")
    return match[1].strip("[]"), int(match[2])


def check_bindable(listeners: Iterable[Listener]) -> None:
    """Raise ConfigError for a repeated port.

    Port 0 may stand several times, and an IPv4 and an IPv6 address may share a port.
    """
    taken: dict[int, str] = {}
    for listener in listeners:
        if listener.port in taken and {_address_family(taken[listener.port]), _address_family(listener.host)} != {4, 6}:
            raise ConfigError(f"listeners uses port {listener.port} twice: give each listener its own port")
        if listener.port:
            taken[listener.port] = listener.host


def set_emulations(listeners: Iterable[Listener], given: Mapping[str, str]) -> list[Listener]:
    """Set the releases that the *given* properties let listeners behave like.

    Raises ConfigError for an unknown listener and for an unknown release.
    """
    by_name = {listener.name: listener for listener in listeners}
    for option, release in given.items():
        match = EMULATE_PATTERN.fullmatch(option)
        if match is None:
            continue
        name = match[1].upper()
        if name not in by_name:
            raise ConfigError(f"{option}={release} is for no listener: name one of {', '.join(by_name)}")
        if release.strip() not in RELEASES:
            raise ConfigError(f"{option}={release} is not valid: it takes one of {', '.join(RELEASES)}")
        by_name[name] = by_name[name]._replace(emulate=release.strip())
    return list(by_name.values())


def check_advertised(listener: Listener, bound: AbstractSet[str]) -> None:
    """Raise ConfigError for an advertised listener that clients could not use."""
    given = f"advertised.listeners={listener.name}://{listener.host}:{listener.port}"
    if listener.name not in bound:
        raise ConfigError(f"{given} is not one of listeners: name one of {', '.join(sorted(bound))}")
    if listener.host == "0.0.0.0":
        raise ConfigError(f"{given} is no address that clients can connect to: name a host or its address")


def _address_family(host: str) -> int:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", host) else 0
