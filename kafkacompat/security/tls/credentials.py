"""The loaded certificates of one listener, and the rules by which others replace them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from cryptography import x509
from OpenSSL import SSL

from kafkacompat.config.properties import ConfigError
from kafkacompat.security.tls.client import ClientTls, refuse_store
from kafkacompat.security.tls.contexts import build_client_context, build_server_context
from kafkacompat.security.tls.mapping import MappingRules, parse_mapping_rules
from kafkacompat.security.tls.names import format_name
from kafkacompat.security.tls.session import TlsError, TlsSession
from kafkacompat.security.tls.stores import ReadFile, describe_validity, read_key_store, read_trust_store

if TYPE_CHECKING:
    from kafkacompat.security.tls.settings import TlsSettings
    from kafkacompat.security.tls.stores import KeyStore

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Credentials:
    """The key, certificates and contexts of a listener; ``trusted`` is None for the authorities of the system."""

    settings: TlsSettings
    key_store: KeyStore
    trusted: tuple[x509.Certificate, ...] | None
    server: SSL.Context
    rules: MappingRules

    @cached_property
    def client(self) -> ClientTls:
        """The side of connections to other brokers, built at its first use: only one listener has such connections."""
        context = build_client_context(self.settings, self.key_store, self.trusted)
        return ClientTls(context, self.settings.checks_host_name)

    @property
    def name(self) -> str:
        """The distinguished name of the certificate."""
        return format_name(self.key_store.certificate.subject)

    def warn_of_validity(self, listener_name: str, now: datetime) -> None:
        """Log a warning if the certificate is not valid at this time."""
        objection = describe_validity(self.key_store.certificate, now)
        if objection is not None:
            log.warning("listener %s: %s: clients will not accept it, so replace it", listener_name, objection)


def load_credentials(settings: TlsSettings, read: ReadFile) -> Credentials:
    """Read the stores of a listener and build its contexts. Raises ConfigError."""
    if not settings.key_store.is_set:
        raise ConfigError(
            "TLS needs a key and its certificate: set ssl.keystore.location, or ssl.keystore.key and more"
        )
    key_store = read_key_store(settings.key_store, read)
    trusted = read_trust_store(settings.trust_store, read)
    rules = parse_mapping_rules(settings.mapping_rules)
    try:
        server = build_server_context(settings, key_store, trusted)
    except SSL.Error as problem:
        raise refuse_store(settings, problem) from None
    return Credentials(settings, key_store, trusted, server, rules)


def check_replacement(before: Credentials, after: Credentials) -> None:
    """Check that new certificates may replace those of a running listener, as Kafka does.

    Raises ConfigError for another name without ``ssl.allow.dn.changes``, for missing alternative names without
    ``ssl.allow.san.changes``, and for a trust store where there was none.
    """
    settings = after.settings
    if not settings.allows_other_name and before.name.lower() != after.name.lower():
        raise ConfigError(
            f"{settings.key_store.source}: the certificate is for {after.name}, the present one for {before.name}:"
            " use the same name, or set ssl.allow.dn.changes=true"
        )
    missing = _alternative_names(before) - _alternative_names(after)
    if missing and not settings.allows_other_alternative_names:
        raise ConfigError(
            f"{settings.key_store.source}: the certificate lacks the alternative names {', '.join(sorted(missing))}"
            " of the present one: add them, or set ssl.allow.san.changes=true"
        )
    if before.trusted is None and after.trusted is not None:
        raise ConfigError(f"{settings.trust_store.source}: a running listener without a trust store cannot get one")


def check_mutual_trust(*credentials: Credentials) -> None:
    """Check that brokers with any of these credentials can connect to each other; raises ConfigError."""
    for client in credentials:
        for server in credentials:
            try:
                _connect(TlsSession(client.client.context, is_server=False), TlsSession(server.server, is_server=True))
            except TlsError as problem:
                raise ConfigError(
                    f"brokers with these stores cannot connect to each other: {problem};"
                    " put the authority of the certificate into the trust store"
                ) from None


def _connect(client: TlsSession, server: TlsSession) -> None:
    """Let two sessions shake hands; raises TlsError."""
    client.advance()
    sides = (client, server)
    while any(_pass_on(sender, receiver) for sender, receiver in (sides, sides[::-1])):
        pass


def _pass_on(sender: TlsSession, receiver: TlsSession) -> bool:
    output = sender.take_output()
    if output:
        receiver.receive(output)
    return bool(output)


def _alternative_names(credentials: Credentials) -> set[str]:
    try:
        extension = credentials.key_store.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in extension.value}
