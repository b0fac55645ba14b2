"""Certificates for TLS, made by openssl: an authority, and members that it vouches for."""

from __future__ import annotations

import subprocess
from pathlib import Path

_KEY = ("-newkey", "rsa:2048", "-nodes")


class Authority:
    """An authority over *folder*; ``certificate`` is its own, in PEM."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = folder / "ca.pem"
        self._folder = folder
        self._key = folder / "ca.key"
        _run_openssl(
            "req", "-x509", *_KEY, "-keyout", self._key, "-out", self.certificate, "-subj", "/CN=ca", "-days", "2"
        )

    def issue(self, name: str, stem: str | None = None) -> Path:
        """Return a file in PEM with the key of *name*, its certificate for 127.0.0.1 and the authority's.

        *stem* begins the names of the files, instead of *name*.
        """
        stem = stem or name
        key, request, certificate = (self._folder / f"{stem}.{ending}" for ending in ("key", "csr", "crt"))
        extensions = self._folder / f"{stem}.cnf"
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
        _run_openssl("req", *_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        signer = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        _run_openssl("x509", "-req", "-in", request, "-out", certificate, "-extfile", extensions, *signer)
        whole = self._folder / f"{stem}.pem"
        whole.write_text("".join(part.read_text() for part in (key, certificate, self.certificate)))
        return whole

    def export(self, member: Path) -> Path:
        """Return a PKCS#12 file with the contents of a member's PEM file; its password is "password"."""
        target = member.with_suffix(".p12")
        _run_openssl("pkcs12", "-export", "-in", member, "-out", target, "-passout", "pass:password")
        return target


def _run_openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
