"""The zero-copy transport: a TCP connection that sends file regions with sendfile.

It replaces the write side of Twisted's `tcp.Server` by `Outgoing`. Two things differ from its
parent: what is written is tried at once (an answer need not wait for the next turn of the reactor),
and a region whose first bytes are not in memory is read ahead in the disk thread before the reactor
touches it, so that one cold reader does not stop everybody else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet import main, tcp
from twisted.internet.defer import Deferred

from kafkacompat.server.outgoing import Outgoing
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.wire.compiler import Part

READ_BYTES = 256 * 1024
READ_AHEAD_BYTES = 1024 * 1024
# How many calls in a row one connection may make, and about how much they may send, before the others have their turn.
MAX_CALLS_PER_TURN = 4
MAX_BYTES_PER_TURN = 1024 * 1024

ReadAhead = Callable[[FileRegion, int, int], "Deferred[Any]"]


class ZeroCopyTransport(tcp.Server):
    """A server connection that takes parts.

    ``read_ahead(region, offset, size_bytes)`` brings a piece of a region into memory off the
    reactor thread; ``on_drained()`` is called whenever something has left the queue.
    """

    bufferSize = READ_BYTES  # noqa: N815 (Twisted's name)

    read_ahead: ReadAhead | None = None
    on_drained: Callable[[], None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.outgoing = Outgoing()
        self._reading_ahead = False
        super().__init__(*args, **kwargs)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def queued_bytes(self) -> int:
        """Bytes that were given and have not left."""
        return self.outgoing.size_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes that have left since the connection was made."""
        return self.outgoing.sent_bytes

    def send_parts(self, parts: Iterable[Part]) -> None:
        """Send *parts* in order; regions are released once they have left or the connection is gone."""
        idle = not self.outgoing
        self.outgoing.extend(parts)
        if not self.connected:
            self.outgoing.clear()
        elif idle and self.outgoing:
            self._write_some()

    def _write_some(self) -> None:
        """Try now; whatever is left is tried in the reactor's next turn, where a failure shows again and closes."""
        self._send_loop()
        if self.outgoing and not self._reading_ahead:
            self.startWriting()

    def doWrite(self) -> BaseException | None:  # type: ignore[override]
        """Twisted: the socket takes bytes again."""
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
        """Start reading a region ahead if it is not in memory; True while that is under way."""
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
        self.read_ahead(region, offset, size).addBoth(self._read_ahead_done)
        return True

    def _read_ahead_done(self, _result: object) -> None:
        self._reading_ahead = False
        if not self.connected:
            return
        # One send without another look: a page that is dropped again at once must not stop us for good.
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
        """Twisted: the connection is gone."""
        super().connectionLost(reason)
        self.outgoing.clear()
        # Who is called here knows this transport: such a circle would wait for a full collection of garbage.
        self.on_drained = self.read_ahead = None


def zero_copy_port(base: type[tcp.Port] = tcp.Port) -> type[tcp.Port]:
    """A listening port whose connections are zero-copy transports."""
    return type("ZeroCopyPort", (base,), {"transport": ZeroCopyTransport})
