"""The configuration in effect: the properties file under what was changed while the broker ran."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.config import BrokerConfig, ConfigError, log_config
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey
from kafkacompat.storage.log_config import LogConfig

log = logging.getLogger(__name__)


def effective_config(config: BrokerConfig, configs: Mapping[ConfigKey, Mapping[str, str]]) -> BrokerConfig:
    """*config* under the changes in *configs* for every broker and for this one.

    Raises ConfigError when they do not fit (any more).
    """
    cluster = configs.get((ResourceType.BROKER, ""), {})
    broker = configs.get((ResourceType.BROKER, str(config.node_id)), {})
    return config.with_changes(cluster, broker) if cluster or broker else config


def config_in_effect(config: BrokerConfig, configs: Mapping[ConfigKey, Mapping[str, str]]) -> BrokerConfig:
    """As `effective_config`; *config* itself when the changes do not fit it (any more)."""
    try:
        return effective_config(config, configs)
    except ConfigError as problem:
        log.warning("what was changed while the broker ran does not fit its properties file: %s", problem)
        return config


class EffectiveConfig:
    """Keeps the configuration in effect, and one `LogConfig` for all topics that are configured alike."""

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self.config = static

    def update(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        """Take over the changes in *configs*; changes that do not fit the properties file are left out."""
        self._log_configs.clear()
        self.config = config_in_effect(self._static, configs)

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """What the log of a topic with these overrides is told."""
        key = frozenset(overrides.items())
        if key not in self._log_configs:
            self._log_configs[key] = log_config(self.config, overrides)
        return self._log_configs[key]
