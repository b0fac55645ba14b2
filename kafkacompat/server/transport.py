"""The zero-copy transports: TCP connections that send file regions with sendfile.

They replace the write side of Twisted's `tcp.Server` and `tcp.Client` by `Outgoing`. Two things differ from the parent class. Bytes are
sent at once, without waiting for the next turn of the reactor. And a region of cold data is read ahead in a thread
before the reactor sends it, so that a reader of cold data does not stop all other connections.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet import main, tcp
from twisted.internet.defer import Deferred

from kafkacompat.server.outgoing import Outgoing
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.compiler import Part

READ_BYTES = 256 * 1024
READ_AHEAD_BYTES = 1024 * 1024
# System calls that one connection makes in a row, and about how many bytes they send, before the others have their
# turn.
MAX_CALLS_PER_TURN = 4
MAX_BYTES_PER_TURN = 1024 * 1024

ReadAhead = Callable[[FileRegion, int, int], "Deferred[Any]"]


class PartSender(tcp.Connection):
    """A connection that sends parts: buffers and file regions.

    ``read_ahead(region, offset, size_bytes)`` loads a piece of a region into memory off the reactor thread;
    ``on_drained()`` is called when queued parts were sent.
    """

    bufferSize = READ_BYTES  # noqa: N815 (Twisted's name)

    read_ahead: ReadAhead | None = None
    on_drained: Callable[[], None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.outgoing = Outgoing()
        self._reading_ahead = False
        super().__init__(*args, **kwargs)

    @property
    def queued_bytes(self) -> int:
        """Bytes that are queued and not sent yet."""
        return self.outgoing.size_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes that were sent since the connection was made."""
        return self.outgoing.sent_bytes

    def send_parts(self, parts: Iterable[Part]) -> None:
        """Send *parts* in order; regions are released once they are sent or the connection is lost."""
        idle = not self.outgoing
        self.outgoing.extend(parts)
        if not self.connected:
            self.outgoing.clear()
        elif idle and self.outgoing:
            self._write_some()

    def _write_some(self) -> None:
        """Send now; the rest is sent in the reactor's next turn, where a lost connection is noticed and closed."""
        self._send_loop()
        if self.outgoing and not self._reading_ahead:
            self.startWriting()

    def doWrite(self) -> BaseException | None:  # type: ignore[override]
        """Twisted: the socket accepts bytes again."""
        failure = self._send_loop()
        if failure is not None:
            return failure
        if self._reading_ahead:
            self.stopWriting()
        elif not self.outgoing:
            self.stopWriting()
            if self.disconnecting:
                return self._postLoseConnection()  # type: ignore[no-any-return]
        if self.on_drained is not None:
            self.on_drained()
        return None

    def _send_loop(self) -> BaseException | None:
        outgoing, left_bytes = self.outgoing, MAX_BYTES_PER_TURN
        try:
            for _ in range(MAX_CALLS_PER_TURN):
                if not outgoing or left_bytes <= 0 or self._must_read_ahead():
                    break
                left_bytes -= outgoing.send(self.socket)
        except BlockingIOError:
            return None
        except OSError:
            return main.CONNECTION_LOST
        return None

    def _must_read_ahead(self) -> bool:
        """Start to read a region ahead if it is not in memory; return True while that is under way."""
        if self._reading_ahead:
            return True
        region = self.outgoing.head_region()
        if region is None or self.read_ahead is None:
            return False
        offset = self.outgoing.head_sent
        size = min(region.size_bytes - offset, READ_AHEAD_BYTES)
        if region.is_resident(offset, size):
            return False
        self._reading_ahead = True
        self.read_ahead(region, offset, size).addBoth(self._on_read_ahead)
        return True

    def _on_read_ahead(self, _result: object) -> None:
        self._reading_ahead = False
        if not self.connected:
            return
        # One send without a second check: the connection must make progress even if the kernel drops the page again at
        # once.
        try:
            if self.outgoing:
                self.outgoing.send(self.socket)
        except BlockingIOError:
            pass
        except OSError:
            self.abortConnection()
            return
        self.startWriting()

    def connectionLost(self, reason: Any) -> None:
        """Twisted: the connection is lost."""
        super().connectionLost(reason)
        self.outgoing.clear()
        # These callables refer to the transport: such a cycle would stay in memory until a full garbage collection.
        self.on_drained = self.read_ahead = None


class ZeroCopyTransport(PartSender, tcp.Server):
    """The broker's end of a client's connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class ZeroCopyClient(PartSender, tcp.Client):
    """The broker's end of a connection to another broker."""

    def createInternetSocket(self) -> socket.socket:
        """Twisted: create the socket."""
        made: socket.socket = super().createInternetSocket()
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made


class ZeroCopyConnector(tcp.Connector):
    """Connects `ZeroCopyClient`s."""

    def _makeTransport(self) -> ZeroCopyClient:
        return ZeroCopyClient(self.host, self.port, self.bindAddress, self, self.reactor)


def make_zero_copy_port(base: type[tcp.Port] = tcp.Port) -> type[tcp.Port]:
    """Return a class of listening ports whose connections are zero-copy transports."""
    return type("ZeroCopyPort", (base,), {"transport": ZeroCopyTransport})
