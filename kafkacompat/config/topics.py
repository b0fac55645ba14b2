"""Topic configs: their table, their values in effect, and the `LogConfig` built from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kafkacompat.config.broker import BrokerConfig
from kafkacompat.config.networks import parse_networks
from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables import topics
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS, find_broker_topic_value
from kafkacompat.config.values import Value
from kafkacompat.storage.log_config import LogConfig

TOPIC_CONFIGS: Mapping[str, Property] = parse_tables(topics.TOPICS)

PRODUCE_WHITELIST, CONSUME_WHITELIST = "kafkacompat.whitelist.produce", "kafkacompat.whitelist.consume"
WHITELISTS = frozenset({PRODUCE_WHITELIST, CONSUME_WHITELIST})

_LOG_FIELDS = {field.name for field in fields(LogConfig)}
_LOG_CONFIGS = [name for name in TOPIC_CONFIGS if name.replace(".", "_") in _LOG_FIELDS]


def find_topic_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """Return the value of one topic config for a topic with these *overrides*.

    Raises ConfigError for an invalid override.
    """
    if name in overrides:
        return TOPIC_CONFIGS[name].parse(overrides[name])
    return find_broker_topic_value(config, name) if name in TOPIC_CONFIG_SYNONYMS else TOPIC_CONFIGS[name].default_value


def check_topic_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Check the overrides of a topic.

    Raises ConfigError for a name that is not a topic config (also for the three that Kafka 4.0 removed), for an invalid
    value, and for values that contradict each other.
    """
    for name, text in overrides.items():
        if name not in TOPIC_CONFIGS:
            raise ConfigError(f"{name} is not a topic config{did_you_mean(name, TOPIC_CONFIGS)}")
        value = TOPIC_CONFIGS[name].parse(text)
        if name in WHITELISTS and isinstance(value, tuple):
            parse_networks(name, value)
    least: Any = find_topic_value(config, overrides, "min.compaction.lag.ms")
    most: Any = find_topic_value(config, overrides, "max.compaction.lag.ms")
    if least > most:
        raise ConfigError(f"min.compaction.lag.ms={least} is not valid: it takes at most max.compaction.lag.ms={most}")
    if find_topic_value(config, overrides, "remote.storage.enable"):
        raise ConfigError("remote.storage.enable=true is not valid: this broker has no tiered storage")


def build_log_config(config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """Build the configuration of the log of a topic with these overrides; ignores names that are not topic configs."""
    values: dict[str, Any] = {name: find_topic_value(config, overrides, name) for name in _LOG_CONFIGS}
    values["cleanup.policy"] = frozenset(values["cleanup.policy"])
    # Kafka's tests set small segments this way, because segment.bytes does not allow them.
    if small := find_topic_value(config, overrides, "internal.segment.bytes"):
        values["segment.bytes"] = small
    return LogConfig(
        **{name.replace(".", "_"): value for name, value in values.items()},
        producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
        validation=config.string("kafkacompat.produce.validation"),
        max_decompressed_bytes=config.int("kafkacompat.decompressed.max.bytes"),
    )
