"""The TLS settings of one listener, read from Kafka's properties ``ssl.*`` and ``listener.name.<listener>.ssl.*``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkacompat.config.listeners import listener_property_name
from kafkacompat.config.properties import ConfigError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
STORE_TYPES = (PEM, PKCS12, JKS)
VERSIONS = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True)
class StoreSettings:
    """Where a key store or trust store is: a file, or PEM text in the properties (``key`` and ``certificates``).

    ``prefix`` begins the names of its properties. Secrets are not in the repr.
    """

    prefix: str
    kind: str
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)

    @property
    def is_set(self) -> bool:
        """Whether there is a store at all."""
        return self.location is not None or self.key is not None or self.certificates is not None

    @property
    def source(self) -> str:
        """The property that names the contents, with its value unless that is a secret."""
        if self.location is not None:
            return f"{self.prefix}.location={self.location}"
        return f"{self.prefix}.certificate.chain" if self.key is not None else f"{self.prefix}.certificates"


@dataclass(frozen=True)
class TlsSettings:
    """The settings of one listener. ``client_auth`` is none, requested or required; ``checks_host_name`` is of the client side."""

    key_store: StoreSettings
    trust_store: StoreSettings
    client_auth: str
    versions: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    checks_host_name: bool
    mapping_rules: str
    allows_other_name: bool
    allows_other_alternative_names: bool

    @property
    def locations(self) -> tuple[str, ...]:
        """The files that hold certificates."""
        return tuple(store.location for store in (self.key_store, self.trust_store) if store.location is not None)


def read_tls_settings(config: BrokerConfig, listener_name: str) -> TlsSettings:
    """Read the settings of a listener: its own properties before those of all listeners.

    Raises ConfigError for values that no listener can have, and for properties that contradict each other.
    """
    reader = _Reader(config, listener_name)
    reader.refuse_engine_factory()
    key_store = reader.key_store()
    _check_pem_properties(key_store, "key")
    trust_store = reader.trust_store()
    _check_pem_properties(trust_store, "certificates")
    return TlsSettings(
        key_store,
        trust_store,
        reader.client_auth(),
        reader.versions(),
        reader.items("ssl.cipher.suites"),
        reader.checks_host_name(),
        reader.text("ssl.principal.mapping.rules") or "DEFAULT",
        bool(config.listener_value(listener_name, "ssl.allow.dn.changes")),
        bool(config.listener_value(listener_name, "ssl.allow.san.changes")),
    )


class _Reader:
    """Reads the properties of one listener."""

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        self._config = config
        self._listener_name = listener_name

    def text(self, name: str) -> str | None:
        value = self._config.listener_value(self._listener_name, name)
        return value if isinstance(value, str) and value else None

    def items(self, name: str) -> tuple[str, ...]:
        value = self._config.listener_value(self._listener_name, name)
        return value if isinstance(value, tuple) else ()

    def describe(self, name: str, value: object) -> str:
        """Return NAME=VALUE with the name under which the value is given."""
        own = listener_property_name(self._listener_name, name)
        return f"{own if own in self._config.given else name}={value}"

    def key_store(self) -> StoreSettings:
        return StoreSettings(
            "ssl.keystore",
            self._store_type("ssl.keystore.type"),
            self.text("ssl.keystore.location"),
            self.text("ssl.keystore.password"),
            self.text("ssl.keystore.key"),
            self.text("ssl.keystore.certificate.chain"),
            self.text("ssl.key.password"),
        )

    def trust_store(self) -> StoreSettings:
        return StoreSettings(
            "ssl.truststore",
            self._store_type("ssl.truststore.type"),
            self.text("ssl.truststore.location"),
            self.text("ssl.truststore.password"),
            certificates=self.text("ssl.truststore.certificates"),
        )

    def _store_type(self, name: str) -> str:
        given = self.text(name) or JKS
        if given.upper() not in STORE_TYPES:
            raise ConfigError(f"{self.describe(name, given)} is not served: it takes one of {', '.join(STORE_TYPES)}")
        return given.upper()

    def client_auth(self) -> str:
        """Return ssl.client.auth; with SASL only the listener's own value counts, as in Kafka."""
        name = "ssl.client.auth"
        has_sasl = any(
            listener.name == self._listener_name and listener.protocol == "SASL_SSL"
            for listener in self._config.listeners
        )
        if has_sasl and listener_property_name(self._listener_name, name) not in self._config.given:
            return "none"
        return self.text(name) or "none"

    def versions(self) -> tuple[str, ...]:
        versions = self.items("ssl.enabled.protocols")
        if not versions or not set(versions) <= set(VERSIONS):
            shown = self.describe("ssl.enabled.protocols", ",".join(versions))
            raise ConfigError(f"{shown} is not served: it takes one or both of {', '.join(VERSIONS)}")
        return versions

    def checks_host_name(self) -> bool:
        algorithm = self.text("ssl.endpoint.identification.algorithm") or ""
        if algorithm.lower() not in ("https", ""):
            shown = self.describe("ssl.endpoint.identification.algorithm", algorithm)
            raise ConfigError(f"{shown} is not served: it takes https, or nothing to leave out the check")
        return algorithm != ""

    def refuse_engine_factory(self) -> None:
        name = self.text("ssl.engine.factory.class")
        if name:
            shown = self.describe("ssl.engine.factory.class", name)
            raise ConfigError(f"{shown} is not served: no Java class runs here, so remove it and name stores by ssl.*")


def _check_pem_properties(store: StoreSettings, needed: str) -> None:
    """Raise ConfigError as Kafka does: PEM text only with the type PEM, either as text or as a file, and without a password."""
    prefix, has_text = store.prefix, store.key is not None or store.certificates is not None
    if has_text and store.kind != PEM:
        raise ConfigError(
            f"{prefix}.type={store.kind} does not go with certificates in the properties: set it to {PEM}"
        )
    if has_text and store.location is not None:
        raise ConfigError(f"{prefix}.location={store.location} and certificates in the properties exclude each other")
    if store.kind == PEM and store.password is not None:
        own = "set ssl.key.password if the key is encrypted" if needed == "key" else "remove it"
        raise ConfigError(f"{prefix}.password does not go with {prefix}.type={PEM}: {own}")
    if needed == "key" and has_text and (store.key is None or store.certificates is None):
        raise ConfigError(f"{prefix}.key and {prefix}.certificate.chain belong together: set both")
    if needed == "key" and store.location is not None and store.kind != PEM and store.password is None:
        raise ConfigError(f"{prefix}.location={store.location} needs a password: set {prefix}.password")
