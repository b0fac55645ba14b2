"""The ends of a connection in memory, and what carries bytes between hosts; see memory_network.py."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

from kafkacompat.storage.segment.shared_files import FileRegion, RegionGoneError

if TYPE_CHECKING:
    from twisted.internet.address import IPv4Address
    from twisted.internet.defer import Deferred
    from twisted.internet.protocol import Protocol

    from kafkacompat.timers import Clock
    from kafkacompat.wire.compiler import Part

WINDOW_BYTES = 256 * 1024
"""Bytes that may travel or wait at the receiver; a sender keeps what is more."""
PACKET_BYTES = 16 * 1024
END = b""
"""What a receiver finds behind the last byte of a peer that has closed."""


class _Packet(NamedTuple):
    arrive: Callable[[], None]
    is_sent_again: bool


def _no_jitter() -> float:
    return 0.0


class Link:
    """Carries packets from one host to another, in order.

    Each takes ``delay_s``, as it is when the packet starts, and what ``jitter`` draws. *clock* is that of the target.
    """

    def __init__(self, clock: Clock, delay_s: float) -> None:
        self.delay_s = delay_s
        self.jitter: Callable[[], float] = _no_jitter
        self._clock = clock
        self._packets: deque[_Packet] = deque()
        self._last_arrival = 0.0
        self._is_cut = False
        self._held = 0

    def send(self, arrive: Callable[[], None], *, is_sent_again: bool = True) -> None:
        """Call *arrive* at the other host. A packet that is not sent again is lost if the link is cut when it arrives."""
        now = self._clock.seconds()
        self._last_arrival = max(self._last_arrival, now + self.delay_s + self.jitter())
        self._packets.append(_Packet(arrive, is_sent_again))
        self._clock.callLater(self._last_arrival - now, self._arrive)

    def cut(self) -> None:
        """Let nothing through."""
        self._is_cut = True

    def heal(self) -> None:
        """Let everything through again, first what was held."""
        self._is_cut = False
        held, self._held = self._held, 0
        for _ in range(held):
            self._clock.callLater(self.delay_s, self._arrive)

    def _arrive(self) -> None:
        if not self._is_cut:
            self._packets.popleft().arrive()
        elif self._packets[self._held].is_sent_again:
            self._held += 1
        else:
            del self._packets[self._held]


class MemoryTransport:
    """One end of a connection: a `Transport`, with what `KafkaConnection` uses besides.

    ``peer`` is the other end. ``read_ahead`` and ``on_drained`` are those of the zero-copy transport.
    """

    peer: MemoryTransport

    def __init__(
        self,
        clock: Clock,
        siblings: dict[MemoryTransport, None],
        own_address: IPv4Address,
        peer_address: IPv4Address,
        out: Link,
    ) -> None:
        self.connected = False
        self.read_ahead: Callable[[FileRegion, int, int], Deferred[Any]] | None = None
        self.on_drained: Callable[[], None] | None = None
        self.queued_bytes = self.sent_bytes = 0
        self._clock = clock
        self._siblings = siblings
        self._own_address, self._peer_address = own_address, peer_address
        self._out = out
        self._protocol: Protocol | None = None
        self._queue: deque[Part] = deque()
        self._head_sent = 0
        self._unacknowledged = self._taken = 0
        self._received: deque[bytes] = deque()
        self._is_paused = False
        self._is_closing = False
        self._is_reading_ahead = False
        self._loaded = 0

    # How it begins

    def open(self, protocol: Protocol) -> None:
        """Connect a protocol."""
        self.connected = True
        self._protocol = protocol
        self._siblings[self] = None
        protocol.makeConnection(self)

    def reject(self) -> None:
        """Close without a protocol."""
        self._send_reset()

    # What protocols call

    def getHost(self) -> IPv4Address:
        """The address of this end."""
        return self._own_address

    def getPeer(self) -> IPv4Address:
        """The address of the other end."""
        return self._peer_address

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self.send_parts([data])

    def send_parts(self, parts: Iterable[Part]) -> None:
        """See Transport.send_parts."""
        for part in parts:
            if self.connected and not self._is_closing and _size(part):
                self._queue.append(part)
                self.queued_bytes += _size(part)
            else:
                _release(part)
        self._send_some()

    def pauseProducing(self) -> None:
        """See Transport.pauseProducing."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """See Transport.resumeProducing."""
        self._is_paused = False
        self._clock.callLater(0, self._deliver)

    def loseConnection(self) -> None:
        """See Transport.loseConnection."""
        if self.connected and not self._is_closing:
            self._is_closing = True
            self._clock.callLater(0, self._close_when_sent)

    def abortConnection(self) -> None:
        """See Transport.abortConnection; the protocol hears of it in the next turn."""
        if self.connected:
            self._is_closing = True
            self._drop_queue()
            self._received.clear()
            self._send_reset()
            self._clock.callLater(0, self._lose, ConnectionAborted())

    def kill(self) -> None:
        """End without a word to the protocol, as when its process is killed."""
        self.connected = False
        self._siblings.pop(self, None)
        self._drop_queue()
        self._received.clear()
        self._send_reset()

    def vanish(self) -> None:
        """Lose the connection at this end only: the other one notices nothing until it sends."""
        self._lose(ConnectionLost())
        self._received.clear()

    # Sending

    def _send_some(self) -> None:
        """Send as much as the other end has room for; a region that is not in memory waits until it was read ahead."""
        try:
            while self._queue and self._unacknowledged < WINDOW_BYTES and not self._must_read_ahead():
                self._send_packet()
        except (RegionGoneError, OSError):
            # As `sendfile`, which fails where the disk does.
            self.abortConnection()

    def _send_packet(self) -> None:
        head = self._queue[0]
        room = min(PACKET_BYTES, WINDOW_BYTES - self._unacknowledged)
        if isinstance(head, FileRegion):
            data = head.pread(self._head_sent, room)
            if not data:
                raise RegionGoneError("the file of a region is too short")
        else:
            data = bytes(memoryview(head)[self._head_sent : self._head_sent + room])  # type: ignore[arg-type]
        self._head_sent += len(data)
        if self._head_sent == _size(head):
            self._head_sent = self._loaded = 0
            _release(self._queue.popleft())
        self.queued_bytes -= len(data)
        self.sent_bytes += len(data)
        self._unacknowledged += len(data)
        self._out.send(lambda: self.peer.receive(data))

    def _must_read_ahead(self) -> bool:
        head = self._queue[0]
        if self._is_reading_ahead:
            return True
        if self.read_ahead is None or not isinstance(head, FileRegion):
            return False
        left = head.size_bytes - self._head_sent
        if self._loaded > self._head_sent or head.is_resident(self._head_sent, left):
            return False
        self._is_reading_ahead = True
        self.read_ahead(head, self._head_sent, left).addBoth(self._continue_after_reading)
        return True

    def _continue_after_reading(self, _: object) -> None:
        """Send the whole region without a second check, as it may never stay in memory."""
        self._is_reading_ahead = False
        self._loaded = _size(self._queue[0]) if self._queue else 0
        self._clock.callLater(0, self._send_on)

    def acknowledge(self, size_bytes: int) -> None:
        """The other end has taken bytes: there is room for more."""
        self._unacknowledged -= size_bytes
        self._send_on()

    def _send_on(self) -> None:
        if self.connected:
            self._send_some()
            self._close_when_sent()
            if self.on_drained is not None:
                self.on_drained()

    def _close_when_sent(self) -> None:
        if self._is_closing and self.connected and not self._queue:
            if any(self._received):
                # A kernel resets a connection that is closed before everything was read.
                self._send_reset()
            else:
                self._out.send(lambda: self.peer.receive(END))
            self._lose(ConnectionDone())

    def _send_reset(self) -> None:
        self._out.send(lambda: self.peer.receive_reset(), is_sent_again=False)

    # Receiving

    def receive(self, data: bytes) -> None:
        """Bytes have arrived, or `END`."""
        if self.connected:
            self._received.append(data)
            self._deliver()
        elif data:
            self._send_reset()

    def receive_reset(self) -> None:
        """The other end is gone."""
        self._received.clear()
        self._lose(ConnectionLost())

    def _deliver(self) -> None:
        while self._received and self.connected and not self._is_paused and not self._is_closing:
            data = self._received.popleft()
            if not data:
                self._lose(ConnectionDone())
                return
            self._acknowledge_later(len(data))
            assert self._protocol is not None
            self._protocol.dataReceived(data)

    def _acknowledge_later(self, size_bytes: int) -> None:
        """Acknowledge bytes, several packets at once as long as the other end has room."""
        self._taken += size_bytes
        if self.peer._unacknowledged > WINDOW_BYTES // 2:
            taken, self._taken = self._taken, 0
            self._out.send(partial(self.peer.acknowledge, taken))

    def _lose(self, reason: Exception) -> None:
        if self.connected:
            self.connected = False
            self._siblings.pop(self, None)
            assert self._protocol is not None
            self._protocol.connectionLost(Failure(reason))
            self._drop_queue()
            self.on_drained = self.read_ahead = None

    def _drop_queue(self) -> None:
        for part in self._queue:
            _release(part)
        self._queue.clear()
        self.queued_bytes = self._head_sent = self._loaded = 0


def _size(part: Part) -> int:
    return part.size_bytes if isinstance(part, FileRegion) else len(part)  # type: ignore[arg-type]


def _release(part: Part) -> None:
    if isinstance(part, FileRegion):
        part.release()
