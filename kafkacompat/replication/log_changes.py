"""The changes of a follower's log that a leader's answers lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.replication.follower import FollowerReplica
    from kafkacompat.wire.primitives import Buffer


class AppendFetched(NamedTuple):
    """Append batches, and take over the leader's high watermark and log start offset."""

    records: Buffer
    leader_high_watermark: int
    leader_log_start_offset: int

    def apply(self, partition: FollowerReplica) -> Deferred[object] | object:
        """Begin the change; a Deferred fires at its end."""
        return partition.append_fetched(self.records, self.leader_high_watermark, self.leader_log_start_offset)


class Truncate(NamedTuple):
    """Remove everything from an offset on."""

    offset: int

    def apply(self, partition: FollowerReplica) -> Deferred[None]:
        """Begin the change; the Deferred fires at its end."""
        return partition.truncate(self.offset)


class StartOver(NamedTuple):
    """Remove everything, and begin at an offset."""

    offset: int

    def apply(self, partition: FollowerReplica) -> Deferred[None]:
        """Begin the change; the Deferred fires at its end."""
        return partition.start_over_at(self.offset)


LogChange: TypeAlias = "AppendFetched | Truncate | StartOver"
