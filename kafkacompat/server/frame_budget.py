"""The bound on the memory that request frames hold in all connections together.

`queued.max.request.bytes` bounds the bytes of incomplete frames and of unanswered requests, including those of clients
that have disconnected. Above the bound connections stop reading, by these rules:

* A connection that holds less than FAIR_SHARE_BYTES reads on: small requests are served however many large frames are
  incomplete.
* Of the connections that hold more, only the one with the oldest frame reads on. So frames complete one after the other
  instead of waiting for each other.
* If that connection receives nothing for STALLED_MS, it is closed, and the next oldest reads on. While a whole request
  of it is served, the others wait.
* The oldest frame is never that of a connection that a quota has muted: a throttled client does not hold up others. If it
  holds memory that others wait for, it is closed.

So the memory held is at most the limit, one frame, and a fair share for each connection. As in Kafka, a limit that is
not positive means no limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

FAIR_SHARE_BYTES = 64 * 1024
STALLED_MS = 30_000


class FrameHolder(Protocol):
    """A connection, as the budget sees it."""

    held_bytes: int

    @property
    def last_received_ms(self) -> int: ...
    @property
    def is_receiving(self) -> bool: ...
    @property
    def is_muted(self) -> bool: ...
    def pause_for_memory(self) -> None: ...
    def resume_for_memory(self) -> None: ...
    def cut_off(self, reason: str) -> None: ...


class FrameBudget:
    """Counts the bytes that every connection holds, and decides which connections may read."""

    def __init__(self, limit_bytes: int, now_ms: Callable[[], int]) -> None:
        self.limit_bytes = limit_bytes if limit_bytes > 0 else sys.maxsize
        self.held_bytes = 0
        self._now_ms = now_ms
        # Connections above their fair share, in the order in which they exceeded it.
        self._large: dict[FrameHolder, None] = {}
        self._paused: dict[FrameHolder, None] = {}

    def update_held_bytes(self, holder: FrameHolder, held_bytes: int) -> None:
        """Note that *holder* now holds *held_bytes*, and pause or resume connections accordingly."""
        self.held_bytes += held_bytes - holder.held_bytes
        holder.held_bytes = held_bytes
        if held_bytes > FAIR_SHARE_BYTES:
            self._large.setdefault(holder)
        elif holder in self._large:
            self._forget_large(holder)
        if self.held_bytes > self.limit_bytes:
            self._pause_large()
        elif self._paused:
            self._resume_all()

    def choose_again(self) -> None:
        """Choose the connection that reads on again, as one was muted, or is muted no longer."""
        if self._paused and self.held_bytes > self.limit_bytes:
            self._pause_large()

    def check_stalled(self) -> None:
        """Close the connection with the oldest large frame if it holds up the others and receives nothing, or is muted."""
        if not self._paused or self.held_bytes <= self.limit_bytes:
            return
        muted = next((holder for holder in self._large if holder.is_muted), None)
        if muted is not None:
            muted.cut_off(
                f"it is throttled, and holds {muted.held_bytes} bytes of requests while memory for requests is short"
            )
            return
        oldest = next(iter(self._large))
        if oldest.is_receiving and self._now_ms() - oldest.last_received_ms >= STALLED_MS:
            oldest.cut_off(
                f"it sent nothing of an incomplete frame for {STALLED_MS} ms while memory for requests is short"
            )

    def _forget_large(self, holder: FrameHolder) -> None:
        del self._large[holder]
        if holder in self._paused:
            self._resume(holder)

    def _pause_large(self) -> None:
        oldest = next((holder for holder in self._large if not holder.is_muted), None)
        for holder in self._large:
            if holder is not oldest and holder not in self._paused:
                self._paused[holder] = None
                holder.pause_for_memory()
        if oldest in self._paused:
            self._resume(oldest)

    def _resume_all(self) -> None:
        for holder in list(self._paused):
            self._resume(holder)

    def _resume(self, holder: FrameHolder) -> None:
        del self._paused[holder]
        holder.resume_for_memory()
