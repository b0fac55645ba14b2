"""The state that the parts of a partition share."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from kafkacompat.partitions.leadership import UNKNOWN, LeaderState
from kafkacompat.storage.log.log import Log, OffsetPosition
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from kafkacompat.disk import Disk
    from kafkacompat.partitions.free_space import FreeSpace
    from kafkacompat.partitions.group_commit import GroupCommit
    from kafkacompat.tenancy.capacity import StorageAccount

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
    """One partition's log, the directory that holds it, its role and its high watermark.

    ``log`` and ``host`` change together when the partition moves to another log directory. ``refusal`` is the error
    that clients get once the partition is deleted or its directory failed; None while it serves.

    The role: a leader has ``leading``, its view of the replicas, and ``is_replicated`` unless it is the only replica.
    Otherwise ``leading`` is None, and ``leader_id`` is the broker that this one follows, -1 for none.

    While ``waits_for_sync`` only what is on the disk counts of this replica's log: everything before ``synced_offset``.

    ``account`` is that of the instance that the partition belongs to, None for a partition of no instance; ``counted_bytes`` are
    those that it has counted of this log. A replica that a reassignment adds counts from the end of the reassignment on, so that an
    instance does not fill while it moves.
    """

    __slots__ = (
        "account",
        "counted_bytes",
        "high_watermark",
        "host",
        "is_added",
        "is_replicated",
        "leader_epoch",
        "leader_id",
        "leading",
        "log",
        "partition_epoch",
        "refusal",
        "synced_offset",
        "waits_for_sync",
    )

    def __init__(
        self, opened: Log, host: PartitionHost, leader_epoch: int, high_watermark: OffsetPosition | None = None
    ) -> None:
        """Create the state of a single replica; with a *high_watermark* that of a replica without a role yet."""
        self.log = opened
        self.host = host
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark or opened.end_position()
        self.leading = LeaderState.of_single_replica() if high_watermark is None else None
        self.leader_id = UNKNOWN
        self.is_replicated = False
        self.partition_epoch = UNKNOWN
        self.waits_for_sync = host.commit.always
        self.synced_offset = 0
        self.refusal: KafkaError | None = None
        self.account: StorageAccount | None = None
        self.counted_bytes = 0
        self.is_added = False

    def __repr__(self) -> str:
        return f"Partition({self.log.topic}-{self.log.partition})"

    @property
    def name(self) -> str:
        """The topic and the partition's number."""
        return f"{self.log.topic}-{self.log.partition}"

    @property
    def disk(self) -> Disk:
        """The thread that waits for the log's disk."""
        return self.host.disk

    def use_account(self, account: StorageAccount | None) -> None:
        """Let another instance, or none, count the log's bytes from now on."""
        if self.account is not None:
            self.account.stored_bytes -= self.counted_bytes
        self.account = account
        self.counted_bytes = 0
        self.count_bytes()

    def count_bytes(self) -> None:
        """Count what the log has grown or shrunk by; called on the reactor's thread after each change of the log's size."""
        account = self.account
        if account is not None:
            counts = self.leading is not None or (account.counts_replicas and not self.is_added)
            size_bytes = self.log.size_bytes if counts else 0
            account.stored_bytes += size_bytes - self.counted_bytes
            self.counted_bytes = size_bytes

    def own_end_offset(self) -> int:
        """Return the end of what counts of this replica's own log."""
        if self.waits_for_sync:
            return max(self.log.recovery_point, self.synced_offset)
        return self.log.log_end_offset

    def not_leader(self) -> KafkaError:
        """Return the refusal of requests that only the leader serves."""
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.name}")

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
