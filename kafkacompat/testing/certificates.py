"""An authority of this process and the certificates that it signs, for brokers and clients of tests.

They are made at the first use and valid for some days. Files are in a temporary folder, which the end of the process removes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from datetime import datetime, timedelta, timezone
from functools import cache
from ipaddress import ip_address
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

VALID_DAYS = 30
BROKER_HOSTS = ("127.0.0.1", "::1")


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
        self._name = _build_name("kafkacompat.testing")
        certificate = self._build(self._name, self._key.public_key(), is_authority=True).sign(
            self._key, hashes.SHA256()
        )
        self.certificate = certificate.public_bytes(Encoding.PEM).decode()
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
        builder = self._build(_build_name(name), key.public_key(), is_authority=False)
        if hosts:
            names = [x509.DNSName("localhost"), *(x509.IPAddress(ip_address(host)) for host in hosts)]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        key_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Pair(key_text, certificate.public_bytes(Encoding.PEM).decode() + self.certificate)

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=VALID_DAYS))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )

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


def _build_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
