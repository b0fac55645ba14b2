"""The receiving half of a connection: bytes become frames, and reading pauses while the client has to wait.

Reading pauses, and with it the client, while any of these holds: too many requests are in flight,
a request holds up those behind it (its order is not settled yet), the client does not take its
answers, or memory for frames is short.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from twisted.internet.protocol import Protocol

from kafkacompat.timers import now_ms
from kafkacompat.wire.frames import FrameError, FrameReader

if TYPE_CHECKING:
    from kafkacompat.server.shared import Shared
    from kafkacompat.server.transport import ZeroCopyTransport


class Receiving(Protocol, ABC):
    """Collects the frames of a client for whoever starts them, and is a holder of memory to the frame budget."""

    transport: ZeroCopyTransport  # type: ignore[assignment]

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._reader = FrameReader(shared.max_frame_bytes)
        self._frames: deque[memoryview] = deque()
        self._finishing = False
        self._paused = False
        self._short_of_memory = False
        self._queued_bytes = 0
        self._in_flight_bytes = 0
        self.held_bytes = 0
        self.last_received_ms = 0

    @abstractmethod
    def cut_off(self, reason: str) -> None:
        """Close at once, and say who and why in one line of the log."""

    @abstractmethod
    def _pump(self) -> None:
        """Start what may be started, and read on or not."""

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes came."""
        self.last_received_ms = now_ms(self._shared.clock)
        try:
            frames = self._reader.feed(data)
        except FrameError as problem:
            self.cut_off(str(problem))
            return
        if frames:
            self._frames.extend(frames)
            self._queued_bytes += sum(map(len, frames))
            self._pump()
        else:
            self._count_held()

    def pause_for_memory(self) -> None:
        """Stop reading until memory is there."""
        self._short_of_memory = True
        self._set_reading()

    @property
    def is_receiving(self) -> bool:
        """Whether the rest of a frame is waited for."""
        return bool(self._reader.held_bytes) and not self._paused

    def resume_for_memory(self) -> None:
        """Go on reading."""
        self._short_of_memory = False
        self._set_reading()

    # What the requests on their way need

    def _drop_frames(self) -> None:
        self._frames.clear()
        self._queued_bytes = 0

    def _count_held(self) -> None:
        held = self._reader.held_bytes + self._queued_bytes + self._in_flight_bytes
        if held != self.held_bytes:
            self._shared.budget.hold(self, held)

    def _set_reading(self) -> None:
        pause = bool(self._frames) or self._short_of_memory or self._finishing
        if pause == self._paused or not self.transport.connected:
            return
        self._paused = pause
        if pause:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()
