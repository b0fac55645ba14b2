"""The broker properties of the group coordinator, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

MINUTE_MS = 60_000


@dataclass(frozen=True)
class GroupSettings:
    """Kafka's properties by their names in snake case, with Kafka's defaults. The last five are not Kafka's.

    A new member waits at most ``new_member_join_timeout_ms`` for its first generation. It cannot send heartbeats before, as it
    may have no id, so only this time limit shows that it is gone.
    """

    group_initial_rebalance_delay_ms: int = 3000
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4096
    offsets_commit_timeout_ms: int = 5000
    offsets_retention_ms: int = 10_080 * MINUTE_MS
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: int = 0
    new_member_join_timeout_ms: int = 5 * MINUTE_MS
    member_metadata_max_bytes: int = 256 << 20
    pending_members_max_bytes: int = 16 << 20
    tombstones_a_batch: int = 1000
    stores_topic_ids: bool = True

    @classmethod
    def from_config(cls, config: BrokerConfig, *, readable_by_old_kafka: bool = False) -> GroupSettings:
        """Read the properties of one broker.

        With *readable_by_old_kafka*, commits are written without topic ids, so that Kafka 2.1 and later can read the log.
        """
        return cls(
            stores_topic_ids=not readable_by_old_kafka,
            group_initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            group_min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
            group_max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
            group_max_size=config.int("group.max.size"),
            offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
            offsets_commit_timeout_ms=config.int("offsets.commit.timeout.ms"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * MINUTE_MS,
            offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
            offsets_topic_compression_codec=config.int("offsets.topic.compression.codec"),
        )
