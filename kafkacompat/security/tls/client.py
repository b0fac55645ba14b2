"""The client's side of TLS: sessions towards other brokers, and the check that a certificate is for its host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from service_identity.pyopenssl import verify_hostname, verify_ip_address
from twisted.internet.abstract import isIPAddress, isIPv6Address

from kafkacompat.config.properties import ConfigError
from kafkacompat.security.tls.contexts import build_client_context
from kafkacompat.security.tls.names import UNREADABLE, format_name
from kafkacompat.security.tls.session import TlsError, TlsSession
from kafkacompat.security.tls.stores import read_key_store, read_trust_store

if TYPE_CHECKING:
    from kafkacompat.security.tls.settings import TlsSettings
    from kafkacompat.security.tls.stores import ReadFile


class ClientTls(NamedTuple):
    """What the connections of a client share."""

    context: SSL.Context
    checks_host_name: bool

    def connect(self, host: str) -> TlsSession:
        """Return a session towards a broker; a name is sent along (SNI), an address is not."""
        return TlsSession(self.context, is_server=False, server_name=None if _is_address(host) else host)

    def check_host(self, session: TlsSession, host: str) -> None:
        """Raise TlsError unless the peer's certificate is for *host*, if that is to be checked."""
        if not self.checks_host_name:
            return
        try:
            if _is_address(host):
                verify_ip_address(session.connection, host)
            else:
                verify_hostname(session.connection, host)
        except (VerificationError, CertificateError):
            raise TlsError(f"the certificate {read_peer_name(session)!r} is not for the host {host!r}") from None


def load_client_tls(settings: TlsSettings, read: ReadFile) -> ClientTls:
    """Read the stores of a client, which needs no key of its own. Raises ConfigError."""
    key_store = read_key_store(settings.key_store, read) if settings.key_store.is_set else None
    trusted = read_trust_store(settings.trust_store, read)
    try:
        return ClientTls(build_client_context(settings, key_store, trusted), settings.checks_host_name)
    except SSL.Error as problem:
        raise refuse_store(settings, problem) from None


def refuse_store(settings: TlsSettings, problem: SSL.Error) -> ConfigError:
    """Say that OpenSSL does not accept the contents of a key store."""
    reason = problem.args[0][-1][-1] if problem.args and problem.args[0] else "an unknown reason"
    return ConfigError(f"{settings.key_store.source}: OpenSSL does not accept the key or certificate: {reason}")


def read_peer_name(session: TlsSession) -> str | None:
    """Return the distinguished name of the peer; None if it has shown no certificate. Raises TlsError."""
    try:
        certificate = session.peer_certificate
        return None if certificate is None else format_name(certificate.subject)
    except UNREADABLE:
        raise TlsError("the name in the peer's certificate cannot be read") from None


def _is_address(host: str) -> bool:
    return isIPAddress(host) or isIPv6Address(host)
