"""One offset that a group has committed."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from kafkacompat.wire.primitives import ZERO_UUID

NO_TIMESTAMP = -1

PartitionKey: TypeAlias = "tuple[str, int]"
"""A topic and the number of a partition."""


class CommittedOffset(NamedTuple):
    """One committed offset. Timestamps are milliseconds since 1970.

    ``expire_timestamp_ms`` is -1 unless the client named a retention time of its own (OffsetCommit up to version 4).
    ``topic_id`` is all zeros if the commit named no topic id.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: bytes = ZERO_UUID

    def may_be_of_topic(self, topic_id: bytes) -> bool:
        """Return whether this may be a commit for *topic_id*; all zeros on either side match every topic."""
        return topic_id in (ZERO_UUID, self.topic_id) or self.topic_id == ZERO_UUID
