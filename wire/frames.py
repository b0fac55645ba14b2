"""Cuts a byte stream into frames: an int32 size, then that many bytes, in both directions.

A reader's memory grows with the received bytes, never with the size that a peer claims.
"""

from __future__ import annotations

import struct

from kafkacompat.wire.foreign_protocols import describe_foreign_protocol

SIZE = struct.Struct(">i")


class FrameError(ValueError):
    """A frame's size is negative or larger than allowed; the connection must be closed."""


class FrameReader:
    """Collects the received bytes of one connection.

    ``max_frame_bytes`` is Kafka's ``socket.request.max.bytes``.
    """

    __slots__ = ("_frame_bytes", "_held", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._held = bytearray()
        # Size of the frame that `_held` begins, with its size field; 4 while the size is unknown.
        self._frame_bytes = 4

    @property
    def max_frame_bytes(self) -> int:
        """The most bytes that the next frames may have."""
        return self._max_frame_bytes

    @max_frame_bytes.setter
    def max_frame_bytes(self, limit_bytes: int) -> None:
        self._max_frame_bytes = limit_bytes

    @property
    def held_bytes(self) -> int:
        """The bytes of the incomplete frame; 0 between frames."""
        return len(self._held)

    def feed(self, data: bytes) -> list[memoryview]:
        """Add received bytes; return the contents of the frames that are now complete.

        Raises FrameError if a size is negative or beyond the limit.
        """
        frames: list[memoryview] = []
        position = self._complete(data, frames) if self._held else 0
        if position < len(data):
            self._split(data, position, frames)
        return frames

    def _complete(self, data: bytes, frames: list[memoryview]) -> int:
        """Fill the held frame from the front of *data*; return the number of bytes used."""
        held, position = self._held, 0
        if len(held) < 4:
            position = min(4 - len(held), len(data))
            held += data[:position]
            if len(held) < 4:
                return position
            self._frame_bytes = 4 + self._size(held, 0)
        missing = self._frame_bytes - len(held)
        held += memoryview(data)[position : position + missing]
        if len(held) == self._frame_bytes:
            frames.append(memoryview(held)[4:])
            self._held = bytearray()
        return min(position + missing, len(data))

    def _split(self, data: bytes, position: int, frames: list[memoryview]) -> None:
        """Cut complete frames out of *data* without copying them; hold the remaining bytes."""
        view, available = memoryview(data), len(data)
        self._frame_bytes = 4
        while available - position >= 4:
            end = position + 4 + self._size(data, position)
            if end > available:
                self._frame_bytes = end - position
                break
            frames.append(view[position + 4 : end])
            position = end
        self._held = bytearray(view[position:])

    def _size(self, data: bytes | bytearray, position: int) -> int:
        size: int = SIZE.unpack_from(data, position)[0]
        if not 0 <= size <= self._max_frame_bytes:
            foreign = describe_foreign_protocol(SIZE.pack(size))
            raise FrameError(foreign or f"a frame claims {size} bytes, but 0 to {self._max_frame_bytes} are allowed")
        return size
