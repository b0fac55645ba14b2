"""Where the value of a config comes from."""

from __future__ import annotations

from enum import IntEnum


class ConfigSource(IntEnum):
    """The source of a value, by the numbers and names of DescribeConfigs (KIP-226)."""

    UNKNOWN = -1
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8
    INSTANCE_CONFIG = 100
    """Not one of Kafka's, whose clients show it as unknown."""
