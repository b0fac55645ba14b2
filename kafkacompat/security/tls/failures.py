"""Why a TLS connection failed, in words: OpenSSL's errors and alerts, and objections to certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from OpenSSL import SSL

from kafkacompat.security.tls.names import UNREADABLE, format_name

if TYPE_CHECKING:
    from OpenSSL.crypto import X509

_OBJECTIONS = {
    2: "the authority that issued it is unknown",
    9: "it is not valid yet",
    10: "it has expired",
    18: "it is self-signed and not trusted",
    19: "its root authority is not trusted",
    20: "the authority that issued it is not trusted",
    21: "the authority that issued it is not trusted",
    23: "it was revoked",
    24: "an authority of it may issue no certificates",
    26: "it is for another purpose",
}
"""Objections by the numbers of X509_V_ERR_..."""
_REASONS = {
    "peer did not return a certificate": "the peer shows no certificate, which ssl.client.auth=required demands",
    "no shared cipher": "the two sides have no cipher suite in common",
    "unsupported protocol": "the peer's TLS version is not in ssl.enabled.protocols",
    "wrong version number": "the peer does not send TLS",
    "http request": "the peer sends an HTTP request",
    "unexpected message": "the peer sends a message that TLS does not allow here",
    "no renegotiation": "the peer wants to negotiate again, which is not allowed",
}
_ALERT = " alert "
_LONGEST_NAME = 200


def describe_objection(number: int, certificate: X509) -> str:
    """Say why a certificate is not accepted; *number* is OpenSSL's."""
    try:
        name = format_name(certificate.to_cryptography().subject)[:_LONGEST_NAME]
    except UNREADABLE:
        name = "(unreadable)"
    return f"the certificate {name!r} is not accepted: {_OBJECTIONS.get(number, f'OpenSSL reports error {number}')}"


def describe_tls_error(problem: SSL.Error) -> str:
    """Say what OpenSSL reports, in the words of its last error."""
    entries = problem.args[0] if problem.args and isinstance(problem.args[0], list) else []
    if not entries:
        return "the connection ended in the middle of a TLS message"
    reason = str(entries[-1][-1])
    if _ALERT in reason:
        return f"the peer refuses with the alert {reason.rpartition(_ALERT)[2]}"
    return _REASONS.get(reason, reason)
