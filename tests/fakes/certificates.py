"""Certificates made in memory, quickly: an authority, and members that it vouches for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cache
from ipaddress import ip_address
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

BEGIN = datetime(2020, 1, 1, tzinfo=timezone.utc)
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
        self.certificate = _sign(parse_name(name), self.key, parse_name(name), self.key, is_authority=True)

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
        begin: datetime = BEGIN,
        end: datetime = END,
    ) -> Member:
        """Issue a certificate for hosts; *name* alone is its common name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = parse_name(name) if isinstance(name, str) else name
        certificate = _sign(subject, key, self.certificate.subject, self.key, hosts, begin=begin, end=end)
        return Member(key, (certificate, self.certificate))


def issue_itself(name: str | x509.Name) -> Member:
    """Return a member whose certificate is self-signed."""
    subject = parse_name(name) if isinstance(name, str) else name
    key = ec.generate_private_key(ec.SECP256R1())
    return Member(key, (_sign(subject, key, subject, key, ("localhost",)),))


@cache
def shared_authority() -> Authority:
    """One authority for tests that need no other."""
    return Authority()


@cache
def shared_member(name: str) -> Member:
    """A member of that authority, for tests that need no other."""
    return shared_authority().issue(name)


def parse_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def encode_certificate(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _sign(
    subject: x509.Name,
    key: Any,
    issuer: x509.Name,
    issuer_key: Any,
    hosts: Sequence[str] = (),
    *,
    is_authority: bool = False,
    begin: datetime = BEGIN,
    end: datetime = END,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_name_host(host) for host in hosts]), critical=False
        )
    return builder.sign(issuer_key, hashes.SHA256())


def _name_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
