"""An authority of this process and the certificates that it signs, for brokers and clients of tests.

They are made at the first use and valid for some days. Files are in a temporary folder, which the end of the process removes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALID_DAYS = 30
BROKER_HOSTS = ("localhost", "127.0.0.1", "::1")
KeyOwner: TypeAlias = tuple[x509.Name, ec.EllipticCurvePrivateKey]
"""A distinguished name and the private key of its owner."""


class CertificateFiles(NamedTuple):
    """The files of a certificate and its key, in PEM; ``combined_file`` has both, as Java wants them."""

    certificate_file: str
    key_file: str
    combined_file: str


class Pair(NamedTuple):
    """A key and its certificate, in PEM."""

    key: str
    certificate: str


class Authority:
    """An authority of its own; ``ca_file`` has its certificate."""

    def __init__(self) -> None:
        self._process_id = os.getpid()
        self._folder = tempfile.mkdtemp(prefix="kafkacompat-")
        atexit.register(self._remove)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = build_name("kafkacompat.testing")
        begin = datetime.now(timezone.utc)
        self._validity = (begin - timedelta(days=1), begin + timedelta(days=VALID_DAYS))
        certificate = sign_certificate(
            (self._name, self._key), (self._name, self._key), self._validity, is_authority=True
        )
        self.certificate = encode_certificate(certificate)
        self.ca_file = self._write("ca.pem", self.certificate)
        self._issued = 0

    def issue_for_broker(self) -> Pair:
        """Return the certificate of a broker on this machine."""
        return self._issue("broker", BROKER_HOSTS)

    def issue(self, user: str) -> CertificateFiles:
        """Write the certificate of a client, whose principal is ``User:CN=<user>``."""
        pair = self._issue(user, ())
        self._issued += 1
        # A forked child writes into the same folder.
        stem = f"client-{os.getpid()}-{self._issued}"
        return CertificateFiles(
            self._write(f"{stem}.crt", pair.certificate),
            self._write(f"{stem}.key", pair.key),
            self._write(f"{stem}.pem", pair.key + pair.certificate),
        )

    def _issue(self, name: str, hosts: tuple[str, ...]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = sign_certificate((build_name(name), key), (self._name, self._key), self._validity, hosts)
        key_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Pair(key_text, encode_certificate(certificate) + self.certificate)

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self._folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text)
        return path

    def _remove(self) -> None:
        # A forked child shares the folder with its parent.
        if os.getpid() == self._process_id:
            shutil.rmtree(self._folder, ignore_errors=True)


@cache
def get_authority() -> Authority:
    """Return the authority of this process."""
    return Authority()


def build_name(common_name: str) -> x509.Name:
    """Return the distinguished name ``CN=<common_name>``."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def encode_certificate(certificate: x509.Certificate) -> str:
    """Return a certificate in PEM."""
    return certificate.public_bytes(Encoding.PEM).decode()


def sign_certificate(
    subject: KeyOwner,
    issuer: KeyOwner,
    validity: tuple[datetime, datetime],
    hosts: Sequence[str] = (),
    *,
    is_authority: bool = False,
) -> x509.Certificate:
    """Return the certificate of a subject, signed by an issuer, for hosts by address or name."""
    begin, end = validity
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject[0])
        .issuer_name(issuer[0])
        .public_key(subject[1].public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if hosts:
        names = [_name_host(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer[1], hashes.SHA256())


def _name_host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
