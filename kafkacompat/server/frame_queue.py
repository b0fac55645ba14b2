"""The frames that a client has sent and no request was started from yet."""

from __future__ import annotations

from collections import deque

from kafkacompat.wire.frames import FrameReader


class FrameQueue:
    """Cuts one connection's bytes into frames; ``waiting`` are the whole ones, oldest first."""

    __slots__ = ("_max_frame_bytes", "_reader", "_waiting_bytes", "waiting")

    def __init__(self, max_frame_bytes: int) -> None:
        self.waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._max_frame_bytes = max_frame_bytes
        self._reader = FrameReader(max_frame_bytes)

    @property
    def held_bytes(self) -> int:
        """Bytes of the waiting frames and of the one that is incomplete."""
        return self._waiting_bytes + self._reader.held_bytes

    @property
    def is_mid_frame(self) -> bool:
        """Whether the client has sent part of a frame."""
        return bool(self._reader.held_bytes)

    def receive(self, data: bytes) -> bool:
        """Add received bytes; return whether they completed a frame.

        Raises FrameError for a frame whose size is negative or beyond the limit.
        """
        frames = self._reader.feed(data)
        if not frames:
            return False
        self.waiting.extend(frames)
        self._waiting_bytes += sum(map(len, frames))
        return True

    def set_limit(self, max_frame_bytes: int) -> None:
        """Change the most bytes that the next frames may have."""
        self._max_frame_bytes = self._reader.max_frame_bytes = max_frame_bytes

    def take(self) -> memoryview:
        """Remove the oldest whole frame and return it."""
        frame = self.waiting.popleft()
        self._waiting_bytes -= len(frame)
        return frame

    def drop_waiting(self) -> None:
        """Drop the whole frames."""
        self.waiting.clear()
        self._waiting_bytes = 0

    def drop_all(self) -> None:
        """Drop the whole frames and the incomplete one."""
        self.drop_waiting()
        self._reader = FrameReader(self._max_frame_bytes)
