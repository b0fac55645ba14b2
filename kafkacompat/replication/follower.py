"""What replication needs from the layers below: a replica that this broker keeps, and a way to send requests to leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.wire.primitives import Buffer
    from kafkacompat.wire.schema import Request, Response

PartitionKey: TypeAlias = "tuple[str, int]"
"""A topic's name and the partition's number in it."""


class FollowerReplica(Protocol):
    """A replica on this broker that follows the partition's leader.

    Its methods that change the log may finish later; then they return a Deferred, and nothing else changes the log until it
    fires. They fail with KafkaError: CORRUPT_MESSAGE, INVALID_RECORD and KAFKA_STORAGE_ERROR are tried again.
    """

    @property
    def topic(self) -> str:
        """The topic's name."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id; sixteen zero bytes if it has none."""

    @property
    def index(self) -> int:
        """The partition's number in its topic."""

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def reported_end_offset(self) -> int:
        """The end of what counts for the leader: with kafkacompat.acks.after=fsync, of what is on the disk."""

    @property
    def last_epoch(self) -> int:
        """The last leader epoch that the log knows, in which it may hold no batch; -1 if there is none."""

    @property
    def high_watermark(self) -> int:
        """The offset up to which this replica knows the log to be committed."""

    def append_fetched(
        self, records: Buffer, leader_high_watermark: int, leader_log_start_offset: int
    ) -> Deferred[object] | object:
        """Append batches as they came, and take over the leader's high watermark and log start offset.

        *records* may be empty. An empty log may get a batch that begins before its end: the leader's log starts inside. A Deferred fires once `reported_end_offset` covers the batches.
        """

    def truncate(self, offset: int) -> Deferred[None]:
        """Remove the batches that reach *offset* or lie after it, and the leader epochs that begin there or later."""

    def start_over_at(self, offset: int) -> Deferred[None]:
        """Remove all records, and continue with an empty log that begins and ends at *offset*."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (largest epoch <= *epoch*, its end offset); (-1, -1) for none."""


class Sender(Protocol):
    """Sends requests to brokers, in order, on a connection that serves nothing else."""

    def send(self, node_id: int, request: Request, timeout_s: float) -> Deferred[Response]:
        """Send a request in the highest version that both brokers have; fails if no response comes in time.

        The caller may cancel the Deferred.
        """


def key_of(partition: FollowerReplica) -> PartitionKey:
    """Return the partition's key."""
    return partition.topic, partition.index
