"""What answers at a port that does not answer as expected: each probe uses a connection of its own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import closing, suppress
from enum import Enum
from typing import TYPE_CHECKING

from kafkacompat.cli.remote.doctor.wire_connection import ExchangeError, WireConnection
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from cryptography import x509

Open = Callable[[], socket.socket]
"""Opens a connection without TLS; raises OSError."""


class PeerKind(Enum):
    """What listens at a port; the value is a predicate of the port."""

    KAFKA = "speaks Kafka's protocol without TLS"
    OLD_KAFKA = "is a Kafka broker older than 0.10, which does not list its versions"
    TLS = "speaks TLS"
    HTTP = "is an HTTP server"
    ZOOKEEPER = "is a ZooKeeper server"
    SSH = "is an SSH server"
    UNKNOWN = "speaks a protocol that the doctor does not recognise"


_FIRST_BYTES = {b"HTTP/": PeerKind.HTTP, b"\x15\x03": PeerKind.TLS, b"SSH-": PeerKind.SSH}
ADVICE = {
    PeerKind.KAFKA: "set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or give the port of the TLS listener",
    PeerKind.OLD_KAFKA: "use clients of its age",
    PeerKind.TLS: "set security.protocol to SSL or SASL_SSL in the file of --command-config",
    PeerKind.HTTP: "give the port of a Kafka listener, often 9092",
    PeerKind.ZOOKEEPER: "give the address of a broker, often port 9092, instead of ZooKeeper's",
    PeerKind.SSH: "give the port of a Kafka listener, often 9092",
    PeerKind.UNKNOWN: "check that this is the address of a Kafka listener and that no proxy stands before it",
}


def recognise(received: bytes) -> PeerKind | None:
    """Return what the first bytes of an answer show."""
    return next((peer for start, peer in _FIRST_BYTES.items() if received.startswith(start)), None)


def identify(received: bytes, open_connection: Open) -> PeerKind:
    """Find out what listens, from the bytes that it sent already and from connections of each protocol."""
    peer = recognise(received)
    if peer is not None:
        return peer
    for peer, probe in _PROBES:
        with suppress(OSError, ExchangeError), closing(open_connection()) as connection:
            if probe(connection):
                return peer
    return PeerKind.UNKNOWN


def _is_kafka(connection: socket.socket) -> bool:
    WireConnection(connection).request_versions()
    return True


def _is_tls(connection: socket.socket) -> bool:
    with closing(_shake_hands(connection, None)):
        return True


def _is_zookeeper(connection: socket.socket) -> bool:
    connection.sendall(b"srvr")
    answer = connection.recv(200)
    return b"zookeeper" in answer.lower() or b"not in the whitelist" in answer


def _is_http(connection: socket.socket) -> bool:
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return recognise(connection.recv(200)) is PeerKind.HTTP


def _is_old_kafka(connection: socket.socket) -> bool:
    WireConnection(connection).request_unasked(MetadataRequest(topics=[]), MetadataResponse, 0)
    return True


_PROBES: tuple[tuple[PeerKind, Callable[[socket.socket], bool]], ...] = (
    (PeerKind.KAFKA, _is_kafka),
    (PeerKind.TLS, _is_tls),
    (PeerKind.ZOOKEEPER, _is_zookeeper),
    (PeerKind.HTTP, _is_http),
    (PeerKind.OLD_KAFKA, _is_old_kafka),
)


def read_certificate(connection: socket.socket, host: str) -> x509.Certificate | None:
    """Return the certificate that a TLS listener shows to anybody, unchecked; None if it shows none. Raises OSError."""
    from cryptography import x509

    with closing(_shake_hands(connection, host)) as stream:
        encoded = stream.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(encoded) if encoded else None


def _shake_hands(connection: socket.socket, host: str | None) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # Nothing is sent over this connection: it serves to see the certificate, also a bad one.
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection, server_hostname=host)
