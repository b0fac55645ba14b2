"""A byte stream cut into frames: int32 size, then that many bytes, in both directions.

What a reader holds grows with the bytes that have arrived, never with the size that a peer claims.
"""

from __future__ import annotations

import struct

from kafkacompat.wire.foreign_protocols import describe_foreign_protocol

SIZE = struct.Struct(">i")


class FrameError(ValueError):
    """A frame's size is negative or larger than allowed; the connection cannot go on."""


class FrameReader:
    """Collects the bytes of one direction of one connection.

    ``max_frame_bytes`` is Kafka's ``socket.request.max.bytes``.
    """

    __slots__ = ("_frame_bytes", "_held", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._held = bytearray()
        # Bytes of the frame that `_held` begins, its size field included; 4 while the size is unknown.
        self._frame_bytes = 4

    @property
    def held_bytes(self) -> int:
        """Bytes of the frame that is still incomplete; 0 between frames."""
        return len(self._held)

    def feed(self, data: bytes) -> list[memoryview]:
        """Take what arrived and return the contents of the frames that are now whole.

        Raises FrameError for a size that is negative or beyond the limit.
        """
        frames: list[memoryview] = []
        position = self._complete(data, frames) if self._held else 0
        if position < len(data):
            self._split(data, position, frames)
        return frames

    def _complete(self, data: bytes, frames: list[memoryview]) -> int:
        """Fill the held frame from the front of *data*; return how much of it was used."""
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
        """Cut whole frames out of *data* without copying them; hold what is left."""
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
            raise FrameError(foreign or f"a frame claims {size} bytes; allowed are 0 to {self._max_frame_bytes}")
        return size
