"""Topic configs: where their values come from and what is refused."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError, build_log_config
from kafkacompat.config.topics import check_topic_configs
from kafkacompat.storage.log_config import LogConfig


def load_broker(text: str = "") -> BrokerConfig:
    return BrokerConfig.load(f"node.id=1\n{text}")


def test_kafkas_defaults_are_the_storage_layers_defaults() -> None:
    assert build_log_config(load_broker(), {}) == LogConfig()


@pytest.mark.parametrize(
    ("text", "retention_ms"),
    [
        ("", 604_800_000),
        ("log.retention.hours=1", 3_600_000),
        ("log.retention.hours=1\nlog.retention.minutes=2", 120_000),
        ("log.retention.minutes=2\nlog.retention.ms=3", 3),
        ("log.retention.hours=-5", -1),
        ("log.retention.ms=-7", -1),
    ],
)
def test_the_finest_unit_of_retention_counts(text: str, retention_ms: int) -> None:
    assert build_log_config(load_broker(text), {}).retention_ms == retention_ms


def test_rolling_and_flushing_in_several_units() -> None:
    config = build_log_config(
        load_broker("log.roll.hours=2\nlog.roll.jitter.ms=9\nlog.flush.scheduler.interval.ms=11"), {}
    )
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (7_200_000, 9, 11)
    assert (
        build_log_config(load_broker("log.flush.interval.ms=5\nlog.flush.scheduler.interval.ms=11"), {}).flush_ms == 5
    )


def test_the_least_in_sync_replicas_are_the_topics_or_the_brokers() -> None:
    given = load_broker("min.insync.replicas=2")
    assert build_log_config(given, {}).min_insync_replicas == 2
    assert build_log_config(given, {"min.insync.replicas": "3"}).min_insync_replicas == 3


def test_a_topics_own_configs_win() -> None:
    overrides = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "max.message.bytes": "10"}
    config = build_log_config(load_broker("log.retention.ms=5\nmessage.max.bytes=20"), overrides)
    assert config.cleanup_policy == {"compact", "delete"}
    assert (config.retention_ms, config.max_message_bytes) == (-1, 10)


def test_broker_only_properties_reach_the_log_config() -> None:
    text = "kafkacompat.produce.validation=header\nkafkacompat.decompressed.max.bytes=5\nproducer.id.expiration.ms=7"
    config = build_log_config(load_broker(text), {})
    assert (config.validation, config.max_decompressed_bytes, config.producer_id_expiration_ms) == ("header", 5, 7)


def test_small_segments_for_tests() -> None:
    assert build_log_config(load_broker(), {"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_stored_names_that_are_gone_are_passed_over() -> None:
    assert build_log_config(load_broker(), {"message.format.version": "2.8"}) == LogConfig()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"no.such.config": "1"}, "no.such.config is not a topic config"),
        ({"message.format.version": "2.8"}, "message.format.version is not a topic config"),
        ({"message.downconversion.enable": "true"}, "message.downconversion.enable is not a topic config"),
        ({"message.timestamp.difference.max.ms": "1"}, "message.timestamp.difference.max.ms is not a topic config"),
        ({"segment.bytes": "1000"}, "segment.bytes=1000 is not valid: it takes a whole number of 1048576 or more"),
        ({"retention.ms": "-2"}, "retention.ms=-2 is not valid: it takes a whole number of -1 or more"),
        ({"cleanup.policy": "shrink"}, "cleanup.policy=shrink is not valid: it takes a list of compact, delete"),
        ({"preallocate": "maybe"}, "preallocate=maybe is not valid: it takes true or false"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "it takes at most max.compaction.lag.ms=8"),
        ({"remote.storage.enable": "true"}, "this broker has no tiered storage"),
    ],
)
def test_refuses(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_topic_configs(load_broker(), overrides)
    assert sentence in str(refusal.value)


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    check_topic_configs(load_broker(), {"cleanup.policy": ""})
    assert build_log_config(load_broker(), {"cleanup.policy": ""}).cleanup_policy == frozenset()
