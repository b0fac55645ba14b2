"""The state that the parts of a partition share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from kafkacompat.storage.log.log import Log, OffsetPosition

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.partitions.free_space import FreeSpace
    from kafkacompat.partitions.group_commit import GroupCommit
    from kafkacompat.wire.errors import KafkaError

log = logging.getLogger(__name__)


class PartitionHost(Protocol):
    """The log directory that holds a partition."""

    commit: GroupCommit
    space: FreeSpace

    @property
    def disk(self) -> Disk:
        """The thread that waits for the directory's disk."""

    def report_failure(self, problem: BaseException) -> None:
        """Take the directory offline: a log in it can no longer be used."""

    def save_truncation(self, opened: Log, high_watermark: int) -> None:
        """Write the checkpoints of a log that was truncated. [disk]"""


class PartitionState:
    """One partition's log, the directory that holds it, and the high watermark.

    ``log`` and ``host`` change together when the partition moves to another log directory. ``refusal`` is the error
    that clients get once the partition is deleted or its directory failed; None while it serves.
    """

    __slots__ = ("high_watermark", "host", "leader_epoch", "log", "refusal")

    def __init__(
        self, opened: Log, host: PartitionHost, leader_epoch: int, high_watermark: OffsetPosition | None = None
    ) -> None:
        self.log = opened
        self.host = host
        self.leader_epoch = leader_epoch
        self.high_watermark: OffsetPosition = high_watermark or opened.end_position()
        self.refusal: KafkaError | None = None

    def __repr__(self) -> str:
        return f"Partition({self.log.topic}-{self.log.partition})"

    @property
    def disk(self) -> Disk:
        """The thread that waits for the log's disk."""
        return self.host.disk

    def stable_position(self) -> OffsetPosition:
        """Return the last stable offset and its position; -1 for a position that only a look-up on disk can tell."""
        first, end = self.log.producer_state.open.first, self.high_watermark
        if first is None or first.offset >= end.offset:
            return end
        start = self.log.log_start_offset
        return first if first.offset > start else OffsetPosition(start, -1, -1)

    def raise_high_watermark(self, end: OffsetPosition) -> None:
        """Let consumers see everything before *end*; do nothing where they see more already."""
        if end.offset >= self.high_watermark.offset:
            active = self.log.segments.active
            # Where one segment ends the next begins: the position names the segment that the next read starts in.
            at_start = end.offset == active.base_offset
            self.high_watermark = OffsetPosition(end.offset, active.base_offset, 0) if at_start else end
            self.settle_transactions()

    def settle_transactions(self) -> None:
        """Close the transactions whose markers consumers can see."""
        self.log.producer_state.open.remove_decided(self.high_watermark.offset)

    def report_failure(self, problem: BaseException) -> None:
        """Report a failed operation to the directory: the log can no longer be used, or the disk may be full."""
        if self.log.offline:
            self.host.report_failure(problem)
        else:
            self.host.space.note_failed_write(problem)

    def report_disk_failure(self, failure: Failure) -> None:
        """Log a failed disk operation and report it to the directory, unless clients are refused already."""
        assert failure.value is not None
        if self.refusal is None:
            if not self.host.space.is_full:
                log.error("%r: %s", self, failure.value)
            self.report_failure(failure.value)
