"""One TLS connection without a network: bytes of the wire in, plain bytes out, and the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from OpenSSL import SSL

from kafkacompat.security.tls.failures import describe_objection, describe_tls_error

if TYPE_CHECKING:
    from OpenSSL.crypto import X509

RECORD_BYTES = 16 * 1024
"""The most plain bytes in a TLS record (RFC 8446, section 5.1)."""
SLICE_BYTES = 64 * 1024
"""Bytes that OpenSSL holds at a time: its buffers never shrink, so that this bounds what each connection keeps."""
_OVERHEAD_BYTES = 1024
_HEADER_BYTES = 5
_MAJOR_VERSION = b"\x03"
_FIRST_BYTES = (b"\x15", b"\x16")
"""The types of an alert and of a handshake record: the first byte of a peer that sends TLS."""
_MOST_FLIGHT_BYTES = 128 * 1024


class TlsError(Exception):
    """A TLS connection has failed; the message says why in words that continue a sentence."""


class TlsSession:
    """A TLS connection over memory; after a TlsError only `take_output` may be called, for the alert.

    ``is_up`` says that the handshake is complete, ``is_ended`` that the peer has closed. OpenSSL's connection, which takes tens
    of kilobytes, exists from the first whole record on (``is_started``): silent and half clients hold next to nothing.
    """

    __slots__ = ("_begin", "_early", "_objection", "_openssl", "is_ended", "is_up")

    def __init__(self, context: SSL.Context, *, is_server: bool, server_name: str | None = None) -> None:
        self._begin = (context, is_server, server_name)
        self._openssl: SSL.Connection | None = None
        self._early: bytes | None = b""
        self._objection = ""
        self.is_up = self.is_ended = False

    @property
    def is_started(self) -> bool:
        """Whether the handshake has begun."""
        return self._openssl is not None

    @property
    def peer_certificate(self) -> Any:
        """The peer's certificate; None if it has shown none."""
        return self.connection.get_peer_certificate(as_cryptography=True)

    @property
    def server_name(self) -> str:
        """The name that the client has dialled (SNI), in lower case; "" without one."""
        name = self.connection.get_servername()
        return "" if name is None else name.decode("latin-1").lower()

    @property
    def connection(self) -> SSL.Connection:
        """OpenSSL's connection, made at the first use."""
        if self._openssl is None:
            context, is_server, server_name = self._begin
            self._openssl = SSL.Connection(context, None)
            if is_server:
                self._openssl.set_accept_state()
            else:
                self._openssl.set_connect_state()
                if server_name is not None:
                    self._openssl.set_tlsext_host_name(server_name.encode("idna"))
        return self._openssl

    def advance(self) -> None:
        """Go on with the handshake as far as the received bytes allow; raises TlsError."""
        connection = self.connection
        # A bound method in the connection would be a cycle, which only a full garbage collection frees.
        connection.set_app_data(self._note_objection)
        try:
            connection.do_handshake()
            self.is_up = True
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.is_ended = True
        except SSL.Error as problem:
            raise TlsError(self._objection or describe_tls_error(problem)) from None
        finally:
            connection.set_app_data(None)

    def _note_objection(self, number: int, certificate: X509) -> None:
        self._objection = self._objection or describe_objection(number, certificate)

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the wire, and return the plain bytes that they complete. Raises TlsError."""
        if self._early is not None:
            data = self._early = self._early + data
            if not _has_record(data):
                return b""
            self._early = None
        plain: list[bytes] = []
        view = memoryview(data)
        for at in range(0, len(data), SLICE_BYTES):
            self.connection.bio_write(view[at : at + SLICE_BYTES])
            if not self.is_up:
                self.advance()
            if self.is_up:
                self._read_records(plain)
        return plain[0] if len(plain) == 1 else b"".join(plain)

    def _read_records(self, plain: list[bytes]) -> None:
        read = self.connection.recv
        try:
            while not self.is_ended:
                plain.append(read(RECORD_BYTES))
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.is_ended = True
        except SSL.Error as problem:
            raise TlsError(describe_tls_error(problem)) from None

    def encrypt(self, data: bytes) -> bytes:
        """Return the records of at most SLICE_BYTES plain bytes, after what the session itself has to say. Raises TlsError."""
        try:
            self.connection.send(data)
        except SSL.Error as problem:
            raise TlsError(describe_tls_error(problem)) from None
        return self._read_output(len(data) + _OVERHEAD_BYTES)

    def take_output(self) -> bytes:
        """Return the bytes for the peer that the session itself has to say: of the handshake, or an alert."""
        return b"" if self._openssl is None else self._read_output(_MOST_FLIGHT_BYTES)

    def _read_output(self, most_bytes: int) -> bytes:
        output: list[bytes] = []
        try:
            # OpenSSL's buffer is nearly always empty after the first read, which a second one would only confirm.
            while not output or len(output[-1]) == most_bytes:
                output.append(self.connection.bio_read(most_bytes))
        except SSL.WantReadError:
            pass
        return output[0] if len(output) == 1 else b"".join(output)

    def close(self) -> bytes:
        """End the session; return the bytes that tell the peer."""
        if self._openssl is None:
            return b""
        try:
            self.connection.shutdown()
        except SSL.Error:
            return b""
        return self.take_output()


def _has_record(data: bytes) -> bool:
    """Return whether *data* begins with a whole record. Raises TlsError if it does not begin as TLS does."""
    if not data.startswith(_FIRST_BYTES) or data[1:2] not in (b"", _MAJOR_VERSION):
        raise TlsError("the peer does not send TLS: set its security.protocol to SSL or SASL_SSL")
    if len(data) < _HEADER_BYTES:
        return False
    size = int.from_bytes(data[_HEADER_BYTES - 2 : _HEADER_BYTES], "big")
    if size > RECORD_BYTES:
        raise TlsError(f"its first record claims {size} bytes, of at most {RECORD_BYTES}")
    return len(data) >= _HEADER_BYTES + size
