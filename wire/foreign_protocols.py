"""Other protocols that reach a Kafka port by mistake, recognised by their first four bytes."""

from __future__ import annotations

_HTTP = "an HTTP request"
_PROXY = "the PROXY protocol of a load balancer"
_FIRST_BYTES = {
    **dict.fromkeys((b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"CONN", b"OPTI", b"TRAC", b"PATC", b"PRI "), _HTTP),
    b"PROX": _PROXY,
    b"\r\n\r\n": _PROXY,
    b"SSH-": "SSH",
}
_TLS_HANDSHAKE = b"\x16\x03"
"""The type of a handshake record and the major version of every TLS (RFC 8446, section 5.1)."""


def describe_foreign_protocol(first_bytes: bytes) -> str | None:
    """Say what sends these four bytes where a frame's size belongs, and what to do; None for bytes of no known protocol."""
    if first_bytes.startswith(_TLS_HANDSHAKE):
        return "the client sends TLS to a listener without TLS: set its security.protocol to PLAINTEXT"
    name = _FIRST_BYTES.get(first_bytes)
    return None if name is None else f"the client sends {name}, and this port takes Kafka's protocol only"
