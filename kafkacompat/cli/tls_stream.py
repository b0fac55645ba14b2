"""TLS over a blocking socket, by the same sessions as between brokers."""

from __future__ import annotations

import socket
from contextlib import suppress

from kafkacompat.security.tls.client import ClientTls
from kafkacompat.security.tls.session import SLICE_BYTES, TlsError

_CLOSED = "it closes the connection during the TLS handshake, as listeners without TLS do"


class TlsStream:
    """What `kafkacompat.cli.requests.BlockingConnection` needs of a socket; the errors are OSErrors."""

    def __init__(self, plain: socket.socket, tls: ClientTls, host: str) -> None:
        """Shake hands over a connected socket, and check that the certificate is for *host*; raises OSError."""
        self._socket = plain
        self._session = tls.connect(host)
        self._received = bytearray()
        try:
            self._session.advance()
            while not self._session.is_up:
                self._socket.sendall(self._session.take_output())
                self._read_socket()
            self._socket.sendall(self._session.take_output())
            tls.check_host(self._session, host)
        except TlsError as problem:
            raise self._fail(problem) from None
        except ConnectionResetError:
            raise ConnectionError(_CLOSED) from None

    def sendall(self, data: bytes) -> None:
        """Send bytes; raises OSError."""
        for start in range(0, len(data), SLICE_BYTES):
            try:
                self._socket.sendall(self._session.encrypt(data[start : start + SLICE_BYTES]))
            except TlsError as problem:
                raise self._fail(problem) from None

    def recv(self, most_bytes: int) -> bytes:
        """Return received bytes, none at the end; raises OSError."""
        while not self._received and not self._session.is_ended:
            try:
                self._read_socket()
            except TlsError as problem:
                raise self._fail(problem) from None
        part = bytes(self._received[:most_bytes])
        del self._received[:most_bytes]
        return part

    def gettimeout(self) -> float | None:
        """Return how long a call waits."""
        return self._socket.gettimeout()

    def settimeout(self, timeout_s: float) -> None:
        """Let each call wait for at most this time."""
        self._socket.settimeout(timeout_s)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read_socket(self) -> None:
        data = self._socket.recv(SLICE_BYTES)
        if not data:
            if not self._session.is_up:
                raise ConnectionError(_CLOSED)
            # As with a plain socket, the end of the connection is the end of the bytes.
            self._session.is_ended = True
            return
        self._received += self._session.receive(data)

    def _fail(self, problem: TlsError) -> ConnectionError:
        """Tell the peer by an alert, as far as it listens."""
        with suppress(OSError):
            self._socket.sendall(self._session.take_output())
        return ConnectionError(f"TLS fails: {problem}")
