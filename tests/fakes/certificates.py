"""Certificates made in memory, quickly: an authority, and members that it vouches for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from kafkacompat.testing.certificates import build_name, encode_certificate, sign_certificate

BEGIN = datetime(2019, 12, 31, tzinfo=timezone.utc)
END = datetime(2120, 1, 1, tzinfo=timezone.utc)


class Member(NamedTuple):
    """A key, and its certificate with those of the authorities above."""

    key: Any
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    @property
    def certificates_pem(self) -> str:
        return "".join(encode_certificate(certificate) for certificate in self.chain)

    def key_pem(self, password: str | None = None) -> str:
        encryption: Any = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        data: bytes = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        return data.decode()

    def pem(self, password: str | None = None) -> str:
        return self.key_pem(password) + self.certificates_pem

    def pkcs12(self, password: str) -> bytes:
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"a", self.key, self.chain[0], self.chain[1:], encryption)


class Authority:
    """An authority with a certificate of its own."""

    def __init__(self, name: str = "ca") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        owner = (build_name(name), self.key)
        self.certificate = sign_certificate(owner, owner, (BEGIN, END), is_authority=True)

    @property
    def pem(self) -> str:
        return encode_certificate(self.certificate)

    @property
    def pkcs12(self) -> bytes:
        """A trust store, with the password "secret"."""
        encryption = BestAvailableEncryption(b"secret")
        return pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(self.certificate, b"ca")], encryption)

    def issue(
        self,
        name: str | x509.Name,
        hosts: Sequence[str] = ("127.0.0.1", "localhost", "broker-1"),
        *,
        end: datetime = END,
    ) -> Member:
        """Issue a certificate for hosts; *name* alone is its common name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = build_name(name) if isinstance(name, str) else name
        certificate = sign_certificate((subject, key), (self.certificate.subject, self.key), (BEGIN, end), hosts)
        return Member(key, (certificate, self.certificate))


def issue_itself(name: str | x509.Name) -> Member:
    """Return a member whose certificate is self-signed."""
    subject = build_name(name) if isinstance(name, str) else name
    key = ec.generate_private_key(ec.SECP256R1())
    return Member(key, (sign_certificate((subject, key), (subject, key), (BEGIN, END), ("localhost",)),))


@cache
def shared_authority() -> Authority:
    """One authority for tests that need no other."""
    return Authority()


@cache
def shared_member(name: str) -> Member:
    """A member of that authority, for tests that need no other."""
    return shared_authority().issue(name)
