"""Topic configs: their table, their effective values, and the `LogConfig` made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kafkacompat.config.broker import BrokerConfig
from kafkacompat.config.properties import ConfigError, Property, index_table
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables import topics
from kafkacompat.config.topic_defaults import SYNONYMS, broker_topic_value
from kafkacompat.config.values import Value
from kafkacompat.storage.log_config import LogConfig

TOPIC_CONFIGS: Mapping[str, Property] = index_table(topics.TOPICS)

_LOG_FIELDS = {field.name for field in fields(LogConfig)}
_LOG_CONFIGS = [name for name in TOPIC_CONFIGS if name.replace(".", "_") in _LOG_FIELDS]


def topic_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """The value of one topic config for a topic with these *overrides*.

    Raises ConfigError for an override that is not valid.
    """
    if name in overrides:
        return TOPIC_CONFIGS[name].parse(overrides[name])
    return broker_topic_value(config, name) if name in SYNONYMS else TOPIC_CONFIGS[name].default_value


def check_topic_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Refuse overrides that a topic may not have.

    Raises ConfigError for a name that is no topic config (the three that Kafka 4.0 removed among
    them), for a value that is not valid, and for values that contradict each other.
    """
    for name, text in overrides.items():
        if name not in TOPIC_CONFIGS:
            raise ConfigError(f"{name} is no topic config{did_you_mean(name, TOPIC_CONFIGS)}")
        TOPIC_CONFIGS[name].parse(text)
    least: Any = topic_value(config, overrides, "min.compaction.lag.ms")
    most: Any = topic_value(config, overrides, "max.compaction.lag.ms")
    if least > most:
        raise ConfigError(f"min.compaction.lag.ms={least} is not valid: it takes at most max.compaction.lag.ms={most}")
    if topic_value(config, overrides, "remote.storage.enable"):
        raise ConfigError("remote.storage.enable=true is not valid: this broker has no tiered storage")


def log_config(config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """What the log of a topic with these overrides is told; names that are no topic config are passed over."""
    values: dict[str, Any] = {name: topic_value(config, overrides, name) for name in _LOG_CONFIGS}
    values["cleanup.policy"] = frozenset(values["cleanup.policy"])
    # Kafka's own way to have small segments in tests: segment.bytes does not allow them.
    if small := topic_value(config, overrides, "internal.segment.bytes"):
        values["segment.bytes"] = small
    return LogConfig(
        **{name.replace(".", "_"): value for name, value in values.items()},
        producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
        validation=config.string("kafkacompat.produce.validation"),
        max_decompressed_bytes=config.int("kafkacompat.decompressed.max.bytes"),
    )
