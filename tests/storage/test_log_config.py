"""A log's configuration."""

from __future__ import annotations

from kafkacompat.storage.log_config import LogConfig


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms, config.segment_jitter_ms) == (1 << 30, 604_800_000, 0)
    assert (config.segment_index_bytes, config.index_interval_bytes) == (10 << 20, 4096)
    assert (config.retention_bytes, config.retention_ms, config.delete_retention_ms) == (-1, 604_800_000, 86_400_000)
    assert (config.max_message_bytes, config.compression_type) == ((1 << 20) + 12, "producer")
    assert (config.compression_gzip_level, config.compression_lz4_level, config.compression_zstd_level) == (-1, 9, 3)
    assert (config.message_timestamp_type, config.message_timestamp_after_max_ms) == ("CreateTime", 3_600_000)
    assert config.message_timestamp_before_max_ms == config.flush_messages == config.flush_ms == 2**63 - 1
    assert config.file_delete_delay_ms == 60_000
    assert config.producer_id_expiration_ms == 86_400_000
    assert config.cleanup_policy == {"delete"}


def test_a_topic_may_be_compacted_and_deleted() -> None:
    assert not LogConfig().compacted
    assert LogConfig(cleanup_policy=frozenset({"compact"})).compacted
    assert LogConfig(cleanup_policy=frozenset({"compact", "delete"})).compacted
