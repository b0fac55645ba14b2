"""Contexts of OpenSSL: what the connections of a listener, or those to other brokers, share."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from OpenSSL import SSL
from OpenSSL.crypto import X509, X509StoreFlags

from kafkacompat.security.tls.ciphers import find_cipher_suites

if TYPE_CHECKING:
    from cryptography import x509

    from kafkacompat.security.tls.settings import TlsSettings
    from kafkacompat.security.tls.stores import KeyStore

_VERSIONS = {"TLSv1.2": SSL.OP_NO_TLSv1_2, "TLSv1.3": SSL.OP_NO_TLSv1_3}
_MODE_RELEASE_BUFFERS = 0x10
"""SSL_MODE_RELEASE_BUFFERS: an idle connection holds no buffers of records (34 KB)."""
_MODE_PARTIAL_WRITE = 0x1
"""SSL_MODE_ENABLE_PARTIAL_WRITE: a write ends with its first record."""
_CLIENT_AUTH = {
    "none": SSL.VERIFY_NONE,
    "requested": SSL.VERIFY_PEER,
    "required": SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT,
}
MOST_NAMED_AUTHORITIES = 100
"""Authorities that a server names to its clients; with more of them it names none, and clients choose by themselves."""
_SYSTEM_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def build_server_context(
    settings: TlsSettings, key_store: KeyStore, trusted: tuple[x509.Certificate, ...] | None
) -> SSL.Context:
    """Build the context of a listener."""
    context = _build_context(settings, key_store)
    context.set_verify(_CLIENT_AUTH[settings.client_auth], note_objection)
    # Sessions are continued by tickets only, whose keys are this context's own: new certificates make them invalid.
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_session_id(sha256(repr(settings).encode()).digest())
    if settings.client_auth != "none":
        _trust(context, trusted)
        if trusted is not None and len(trusted) <= MOST_NAMED_AUTHORITIES:
            for certificate in trusted:
                context.add_client_ca(certificate)
    return context


def build_client_context(
    settings: TlsSettings, key_store: KeyStore | None, trusted: tuple[x509.Certificate, ...] | None
) -> SSL.Context:
    """Build the context of connections to other brokers."""
    context = _build_context(settings, key_store)
    context.set_verify(SSL.VERIFY_PEER, note_objection)
    _trust(context, trusted)
    return context


def _build_context(settings: TlsSettings, key_store: KeyStore | None) -> SSL.Context:
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_options(SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_COMPRESSION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    context.set_mode(_MODE_RELEASE_BUFFERS)
    context.clear_mode(_MODE_PARTIAL_WRITE)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    for version, exclusion in _VERSIONS.items():
        if version not in settings.versions:
            context.set_options(exclusion)
    if settings.cipher_suites:
        _limit_ciphers(context, settings.cipher_suites)
    if key_store is not None:
        context.use_privatekey(key_store.key)
        context.use_certificate(key_store.certificate)
        for certificate in key_store.chain[1:]:
            context.add_extra_chain_cert(certificate)
    return context


def _limit_ciphers(context: SSL.Context, names: tuple[str, ...]) -> None:
    suites = find_cipher_suites(names)
    if suites.tls_1_2:
        context.set_cipher_list(":".join(suites.tls_1_2).encode())
    else:
        context.set_options(SSL.OP_NO_TLSv1_2)
    if suites.tls_1_3:
        context.set_tls13_ciphersuites(":".join(suites.tls_1_3).encode())
    else:
        context.set_options(SSL.OP_NO_TLSv1_3)


def _trust(context: SSL.Context, trusted: tuple[x509.Certificate, ...] | None) -> None:
    """Trust these certificates, or those of the system; as in Java, a trusted certificate need not be an authority's root."""
    store = context.get_cert_store()
    assert store is not None
    store.set_flags(X509StoreFlags.PARTIAL_CHAIN)
    if trusted is not None:
        for certificate in trusted:
            store.add_cert(X509.from_cryptography(certificate))
        return
    context.set_default_verify_paths()
    for bundle in filter(os.path.exists, _SYSTEM_BUNDLES):
        context.load_verify_locations(bundle)
        return


def note_objection(connection: SSL.Connection, certificate: X509, number: int, depth: int, is_accepted: int) -> bool:
    """OpenSSL: a certificate was checked; the first objection goes to the connection's owner, as its app data."""
    note: Callable[[int, X509], None] | Any = connection.get_app_data()
    if not is_accepted and note is not None:
        note(number, certificate)
    return bool(is_accepted)
