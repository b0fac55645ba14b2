"""What the doctor says about a broker's certificate."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.doctor.peers import read_certificate
from kafkacompat.cli.remote.doctor.verdicts import Verdict, accept, warn

if TYPE_CHECKING:
    from cryptography import x509

    from kafkacompat.cli.remote.doctor.stages import DoctorAccess, Reached

SOON_DAYS = 30
_MOST_NAMES = 5


def judge_certificate(access: DoctorAccess, reached: Reached, host: str, port: int) -> Verdict:
    """Return the verdict on a handshake that succeeded, with the certificate's names and its end."""
    certificate = find_certificate(access, reached, host, port)
    if certificate is None:
        return accept("TLS", "the handshake succeeds")
    text = f"the handshake succeeds, with the {describe_certificate(certificate)}"
    left_days = (certificate.not_valid_after_utc.timestamp() - access.network.now_s()) / 86400
    if left_days < SOON_DAYS:
        return warn("TLS", text, f"renew the certificate: it expires in {max(0, int(left_days))} days")
    return accept("TLS", text)


def find_certificate(access: DoctorAccess, reached: Reached, host: str, port: int) -> x509.Certificate | None:
    """Return the listener's certificate without checking it, None if it cannot be read."""
    with suppress(OSError, ValueError):
        return read_certificate(access.network.connect(reached.address, port, access.timeout_s), host)
    return None


def describe_certificate(certificate: x509.Certificate) -> str:
    """Return the names and the period of a certificate as one phrase."""
    from kafkacompat.security.tls.names import format_name

    issuer = "itself" if certificate.issuer == certificate.subject else f"'{format_name(certificate.issuer)}'"
    names = ", ".join(list_hosts(certificate)[:_MOST_NAMES]) or "no host"
    begin, end = (_format_day(day) for day in (certificate.not_valid_before_utc, certificate.not_valid_after_utc))
    subject = format_name(certificate.subject)
    return f"certificate '{subject}' for {names}, issued by {issuer}, valid from {begin} to {end}"


def list_hosts(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses of a certificate."""
    from cryptography import x509

    with suppress(x509.ExtensionNotFound, ValueError):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts: list[str] = names.get_values_for_type(x509.DNSName)
        return hosts + [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return []


def _format_day(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).date().isoformat()
