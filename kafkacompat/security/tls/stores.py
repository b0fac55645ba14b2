"""Reading key stores and trust stores: PEM and PKCS#12, from a file or from the properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key, pkcs12

from kafkacompat.config.properties import ConfigError
from kafkacompat.security.tls.settings import PEM
from kafkacompat.storage.files.os_errors import describe_error

if TYPE_CHECKING:
    from kafkacompat.security.tls.settings import StoreSettings

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE = 64
_JAVA_KEY_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""The first bytes of a JKS and of a JCEKS file."""

ReadFile = Callable[[str], bytes]
"""Returns a file's contents; raises OSError."""


def read_file(path: str) -> bytes:
    """Read a file of the operating system."""
    return Path(path).read_bytes()


class KeyStore(NamedTuple):
    """A private key and its certificates, the key's own first."""

    key: Any
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate of the key."""
        return self.chain[0]


def read_key_store(store: StoreSettings, read: ReadFile) -> KeyStore:
    """Read a key and its certificates; raises ConfigError."""
    if store.kind == PEM:
        text = _read_pem(store, read)
        key = _load_pem_key(store, store.key if store.key is not None else text)
        chain = _load_pem_certificates(store, text)
    else:
        key, chain = _read_pkcs12(store, read)
        if key is None:
            raise ConfigError(f"{store.source} has no private key: name a key store with a key and its certificate")
    if not chain:
        raise ConfigError(f"{store.source} has no certificate: add the certificate of the key")
    if _public_bytes(key.public_key()) != _public_bytes(chain[0].public_key()):
        name = chain[0].subject.rfc4514_string()
        raise ConfigError(
            f"{store.source}: the key does not belong to the first certificate, {name}: put that one first"
        )
    return KeyStore(key, tuple(chain))


def read_trust_store(store: StoreSettings, read: ReadFile) -> tuple[x509.Certificate, ...] | None:
    """Read the trusted certificates; None if no store is set. Raises ConfigError."""
    if not store.is_set:
        return None
    if store.kind == PEM:
        trusted: Sequence[x509.Certificate] = _load_pem_certificates(store, _read_pem(store, read))
    else:
        _, trusted = _read_pkcs12(store, read)
    if not trusted:
        raise ConfigError(f"{store.source} has no certificate: add the certificates of the trusted authorities")
    return tuple(trusted)


def describe_validity(certificate: x509.Certificate, now: datetime) -> str | None:
    """Return in words why a certificate is not valid at a time; None if it is valid."""
    name = certificate.subject.rfc4514_string()
    if now > certificate.not_valid_after_utc:
        return f"the certificate {name} has expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if now < certificate.not_valid_before_utc:
        return f"the certificate {name} is valid only from {certificate.not_valid_before_utc:%Y-%m-%d} on"
    return None


def _read_file(store: StoreSettings, read: ReadFile) -> bytes:
    assert store.location is not None
    try:
        return read(store.location)
    except OSError as problem:
        problem.filename = None
        raise ConfigError(f"{store.source} cannot be read: {describe_error(problem)}") from None


def _read_pem(store: StoreSettings, read: ReadFile) -> str:
    if store.location is None:
        assert store.certificates is not None
        return store.certificates
    return _read_file(store, read).decode("latin-1")


def _find_pem(text: str, label: str) -> list[bytes]:
    """Return the blocks of one kind in canonical form: in a property the line breaks may be blanks."""
    blocks = []
    for kind, content in _PEM_BLOCK.findall(text):
        if kind.endswith(label):
            if ":" not in content:
                packed = "".join(content.split())
                content = "\n".join(["", *(packed[at : at + _LINE] for at in range(0, len(packed), _LINE)), ""])
            blocks.append(f"-----BEGIN {kind}-----{content}-----END {kind}-----\n".encode("latin-1"))
    return blocks


def _load_pem_certificates(store: StoreSettings, text: str) -> list[x509.Certificate]:
    try:
        return [x509.load_pem_x509_certificate(block) for block in _find_pem(text, "CERTIFICATE")]
    except ValueError:
        raise ConfigError(f"{store.source} has a certificate that is damaged: write it again") from None


def _load_pem_key(store: StoreSettings, text: str) -> Any:
    blocks = _find_pem(text, "PRIVATE KEY")
    source = store.source if store.location is not None else f"{store.prefix}.key"
    if not blocks:
        raise ConfigError(f"{source} has no private key in PEM: add one between BEGIN PRIVATE KEY and END PRIVATE KEY")
    is_encrypted = b"ENCRYPTED" in blocks[0]
    if is_encrypted and store.key_password is None:
        raise ConfigError(f"{source} has an encrypted key: set ssl.key.password")
    password = store.key_password.encode() if is_encrypted and store.key_password is not None else None
    try:
        return load_pem_private_key(blocks[0], password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = (
            "ssl.key.password does not open its key" if is_encrypted else "its key is damaged or of an unknown kind"
        )
        raise ConfigError(f"{source}: {reason}") from None


def _read_pkcs12(store: StoreSettings, read: ReadFile) -> tuple[Any, list[x509.Certificate]]:
    """Return the key (None without one) and the certificates, the key's own first."""
    data = _read_file(store, read)
    _refuse_other_format(store, data)
    password = None if store.password is None else store.password.encode()
    try:
        contents = pkcs12.load_pkcs12(data, password)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"{store.source}: {store.prefix}.password does not open the file, or it is damaged") from None
    if store.key_password not in (None, store.password):
        raise ConfigError(f"{store.source}: a PKCS#12 file has one password, so ssl.key.password must be the same")
    own = [] if contents.cert is None else [contents.cert.certificate]
    return contents.key, [*own, *(entry.certificate for entry in contents.additional_certs)]


def _refuse_other_format(store: StoreSettings, data: bytes) -> None:
    if data.startswith(_JAVA_KEY_STORES):
        path = store.location
        command = f"keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 -deststoretype PKCS12"
        raise ConfigError(f"{store.source} is a JKS file: convert it with `{command}` and name the new file")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise ConfigError(f"{store.source} is a PEM file: set {store.prefix}.type={PEM}")
    if not data.startswith(b"\x30"):
        raise ConfigError(f"{store.source} is no PKCS#12 file: name one, or set {store.prefix}.type={PEM} for PEM")


def _public_bytes(key: Any) -> bytes:
    data: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return data
