"""What passes through one partition of this broker, and how in-sync sets change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class GrowingLog(Protocol):
    """A partition's log."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def segments(self) -> Any:
        """The segments, oldest first, with ``base_offset`` and ``size_bytes``."""


class PartitionTraffic:
    """What a partition has received and sent: records and bytes of batches, as leader and as follower, and requests.

    What is appended is not counted, because every batch would pay for that: it is what the log has grown by since the last
    `update`, in the role that the broker has had since then. If compaction rewrites a segment in between, its growth is missing.
    """

    __slots__ = (
        "_base_offset",
        "_end_offset",
        "_is_leader",
        "_size_bytes",
        "fetches",
        "followed_bytes",
        "led_bytes",
        "led_records",
        "produces",
        "refused_appends",
        "refused_fetches",
        "sent_bytes",
        "sent_to_replicas_bytes",
    )

    def __init__(self) -> None:
        self.led_records = self.led_bytes = self.followed_bytes = 0
        self.sent_bytes = self.sent_to_replicas_bytes = 0
        self.produces = self.refused_appends = 0
        self.fetches = self.refused_fetches = 0
        self._is_leader: bool | None = None
        self._base_offset = self._size_bytes = self._end_offset = 0

    def note_role(self, is_leader: bool, opened: GrowingLog) -> None:
        """Note the role from now on."""
        if self._is_leader is None:
            self.begin_at(opened)
        else:
            self.update(opened)
        self._is_leader = is_leader

    def begin_at(self, opened: GrowingLog) -> None:
        """Count from the present end of a log on."""
        active = opened.segments[-1]
        self._base_offset, self._size_bytes = active.base_offset, active.size_bytes
        self._end_offset = opened.log_end_offset

    def update(self, opened: GrowingLog) -> None:
        """Add what the log has grown by; one that was cut has not."""
        grown_bytes = max(0, self._measure(opened) - self._size_bytes)
        if self._is_leader:
            self.led_bytes += grown_bytes
            self.led_records += max(0, opened.log_end_offset - self._end_offset)
        else:
            self.followed_bytes += grown_bytes
        self.begin_at(opened)

    def _measure(self, opened: GrowingLog) -> int:
        """Return the bytes from the beginning of the segment that was active at the last update."""
        size_bytes, segments = 0, opened.segments
        for slot in range(len(segments) - 1, -1, -1):
            segment = segments[slot]
            if segment.base_offset < self._base_offset:
                break
            size_bytes += segment.size_bytes
        return size_bytes

    def note_fetch(self, size_bytes: int, failed: bool, to_replica: bool) -> None:
        """Count what a response says of the partition to a consumer or to a follower."""
        self.fetches += 1
        if failed:
            self.refused_fetches += 1
        if to_replica:
            self.sent_to_replicas_bytes += size_bytes
        else:
            self.sent_bytes += size_bytes


@dataclass(slots=True)
class InSyncCounts:
    """Changes of in-sync sets that the controller has committed for this leader, and those that it has rejected."""

    shrinks: int = 0
    expands: int = 0
    failures: int = 0

    def note_change(self, old_size: int, new_size: int) -> None:
        """Count a change from a set of *old_size* replicas to one of *new_size*."""
        self.shrinks += new_size < old_size
        self.expands += new_size > old_size
