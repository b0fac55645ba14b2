"""Configuration: every property, its checks, and the values in effect. `BrokerConfig.load` reads what users give."""

from kafkacompat.config.broker import PROPERTIES, BrokerConfig
from kafkacompat.config.development import DEVELOPMENT_DEFAULTS
from kafkacompat.config.listeners import Listener
from kafkacompat.config.properties import ConfigError, Property
from kafkacompat.config.topics import TOPIC_CONFIGS, build_log_config

__all__ = [
    "DEVELOPMENT_DEFAULTS",
    "PROPERTIES",
    "TOPIC_CONFIGS",
    "BrokerConfig",
    "ConfigError",
    "Listener",
    "Property",
    "build_log_config",
]
