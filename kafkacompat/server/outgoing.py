"""The send queue of a connection: buffers, and file regions that the kernel sends without a copy."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable

from kafkacompat.storage.segment.shared_files import FileRegion, RegionGoneError
from kafkacompat.wire.compiler import Part
from kafkacompat.wire.primitives import Buffer
from kafkacompat.wire.schema import Struct

MAX_REGION_BYTES_PER_CALL = 1024 * 1024
"""Bytes of one `sendfile` call: it takes a third of a millisecond, and every other connection waits for it."""
MAX_BUFFERS_PER_CALL = 64
"""Buffers of one `sendmsg` call, below Linux' IOV_MAX (1024); more of them make no call faster."""

SMALL_REGION_BYTES = 64 * 1024
"""A region up to this size is copied: that costs less than the system calls for sending it from the file."""
MAX_COPIED_BYTES = 128 * 1024
"""Bytes that are copied for one call, since copies are held until the client reads them."""

MORE_FOLLOWS = getattr(socket, "MSG_MORE", 0)
"""Lets the few bytes before a region share its packets."""


class Outgoing:
    """A queue of parts, and how much of its head was sent.

    ``size_bytes`` are still queued; ``sent_bytes`` were sent since the queue was created.
    """

    __slots__ = ("_head_sent", "_parts", "sent_bytes", "size_bytes")

    def __init__(self) -> None:
        self._parts: deque[Part] = deque()
        self._head_sent = 0
        self.size_bytes = self.sent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def extend(self, parts: Iterable[Part]) -> None:
        """Queue parts; empty ones are released at once."""
        for part in parts:
            size = part.size_bytes if isinstance(part, FileRegion) else len(part)  # type: ignore[arg-type]
            if size:
                self._parts.append(part)
                self.size_bytes += size
            else:
                release_part(part)

    def head_region(self) -> FileRegion | None:
        """Return the file region at the head of the queue; None for a buffer. Raises RegionGoneError."""
        head = self._copy_small_region(0, SMALL_REGION_BYTES) if self._parts else None
        return head if isinstance(head, FileRegion) else None

    def _copy_small_region(self, slot: int, most_bytes: int) -> Part:
        """Return the part in a slot; replace a region of at most *most_bytes* that is in memory by a copy."""
        part = self._parts[slot]
        if isinstance(part, FileRegion) and part.size_bytes <= most_bytes:
            data = part.peek()
            if data is not None:
                part.release()
                self._parts[slot] = part = data
        return part

    @property
    def head_sent(self) -> int:
        """Bytes of the first part that were sent already."""
        return self._head_sent

    def send(self, to: socket.socket) -> int:
        """Send as much as the kernel accepts in one call; return that many bytes.

        Raises BlockingIOError when the kernel accepts nothing now, other OSErrors when the connection is lost.
        """
        region = self.head_region()
        sent = self._send_buffers(to) if region is None else self._send_region(to, region)
        self._consume(sent)
        return sent

    def _send_buffers(self, to: socket.socket) -> int:
        buffers: list[memoryview] = []
        flags, room_bytes = 0, MAX_COPIED_BYTES
        for slot in range(min(len(self._parts), MAX_BUFFERS_PER_CALL)):
            part = self._copy_small_region(slot, min(SMALL_REGION_BYTES, room_bytes))
            if isinstance(part, FileRegion):
                flags = MORE_FOLLOWS
                break
            buffers.append(memoryview(part))  # type: ignore[arg-type]
            room_bytes -= len(buffers[-1])
        buffers[0] = buffers[0][self._head_sent :]
        return to.send(buffers[0], flags) if len(buffers) == 1 else to.sendmsg(buffers, (), flags)

    def _send_region(self, to: socket.socket, region: FileRegion) -> int:
        wanted = min(region.size_bytes - self._head_sent, MAX_REGION_BYTES_PER_CALL)
        sent = region.send(to.fileno(), self._head_sent, wanted)
        if sent == 0:
            raise RegionGoneError(f"a region of {region.size_bytes} bytes ends {wanted} bytes or more before its end")
        return sent

    def _consume(self, sent: int) -> None:
        self.sent_bytes += sent
        if sent == self.size_bytes:
            self.clear()
            return
        self.size_bytes -= sent
        sent += self._head_sent
        while True:
            head = self._parts[0]
            size = head.size_bytes if isinstance(head, FileRegion) else len(head)  # type: ignore[arg-type]
            if sent < size:
                break
            sent -= size
            release_part(self._parts.popleft())
        self._head_sent = sent

    def take(self, most_bytes: int) -> bytes:
        """Remove and return the next bytes; regions are read from their files, those after the first only if they are in memory.

        Raises RegionGoneError, and OSError if a file cannot be read.
        """
        pieces: list[Buffer] = []
        room_bytes, sent = most_bytes, self._head_sent
        for part in self._parts:
            if not isinstance(part, FileRegion):
                pieces.append(memoryview(part)[sent : sent + room_bytes])  # type: ignore[arg-type]
            elif not pieces or part.is_resident(sent, min(room_bytes, part.size_bytes - sent)):
                pieces.append(_read_region(part, sent, room_bytes))
            else:
                break
            room_bytes -= len(pieces[-1])
            sent = 0
            if not room_bytes:
                break
        taken = b"".join(pieces)
        self._consume(len(taken))
        return taken

    def clear(self) -> None:
        """Drop all parts and release their files."""
        for part in self._parts:
            release_part(part)
        self._parts.clear()
        self._head_sent = self.size_bytes = 0


def _read_region(region: FileRegion, offset: int, most_bytes: int) -> bytes:
    data = region.pread(offset, most_bytes)
    if len(data) < min(most_bytes, region.size_bytes - offset):
        raise RegionGoneError(f"a region of {region.size_bytes} bytes ends before its byte {offset + most_bytes}")
    return data


def release_part(part: Part) -> None:
    """Release the file of a part that will not be sent any more."""
    if isinstance(part, FileRegion):
        part.release()


def release_regions(message: Struct) -> None:
    """Release every file region in a response that was not encoded and will not be sent."""
    for name in message.FIELDS:
        _release_value(getattr(message, name))


def _release_value(value: object) -> None:
    if isinstance(value, FileRegion):
        value.release()
    elif isinstance(value, Struct):
        release_regions(value)
    elif isinstance(value, list):
        for item in value:
            _release_value(item)
