"""The configs of a partition's log: Kafka's topic configs, by their names in snake case."""

from __future__ import annotations

from dataclasses import dataclass, field

LONG_MAX = 2**63 - 1

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"

PRODUCER = "producer"
"""compression.type: batches stay as their producers compressed them."""

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The configs that the storage layer and its callers read; the defaults are those of Kafka 4.3.1.

    Three fields are not topic configs: `producer_id_expiration_ms` is the broker's producer.id.expiration.ms,
    `validation` is kafkacompat.produce.validation ("records" or "header"), and `max_decompressed_bytes` bounds the
    bytes that one batch may decompress to when its records are read.
    """

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = PRODUCER
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = CREATE_TIME
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS
    producer_id_expiration_ms: int = DAY_MS
    validation: str = "records"
    max_decompressed_bytes: int = 104_857_600

    compacted: bool = field(init=False)
    """Whether the topic is compacted, so that every record needs a key."""
    max_segment_ms: int = field(init=False)
    """The age at which a segment is rolled: compaction needs whole segments before max.compaction.lag.ms passes."""

    def __post_init__(self) -> None:
        """Derive once per change of the configs what each append asks for."""
        compacted = "compact" in self.cleanup_policy
        object.__setattr__(self, "compacted", compacted)
        longest_ms = min(self.segment_ms, self.max_compaction_lag_ms) if compacted else self.segment_ms
        object.__setattr__(self, "max_segment_ms", longest_ms)
