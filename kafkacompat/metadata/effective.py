"""The configuration in effect: the properties file under what was changed while the broker ran."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from kafkacompat.config import BrokerConfig, ConfigError, build_log_config
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey
from kafkacompat.metadata.instance_defaults import InstanceDefaults
from kafkacompat.metadata.instance_limits import FindInstance, find_no_instance, limit_defaults
from kafkacompat.storage.log_config import LogConfig

log = logging.getLogger(__name__)

Items: TypeAlias = "tuple[tuple[str, str], ...]"


def effective_config(config: BrokerConfig, configs: Mapping[ConfigKey, Mapping[str, str]]) -> BrokerConfig:
    """*config* under the changes in *configs* for every broker and for this one.

    Raises ConfigError when they do not fit (any more).
    """
    cluster = configs.get((ResourceType.BROKER, ""), {})
    broker = configs.get((ResourceType.BROKER, str(config.node_id)), {})
    return config.with_changes(cluster, broker) if cluster or broker else config


def config_in_effect(config: BrokerConfig, configs: Mapping[ConfigKey, Mapping[str, str]]) -> BrokerConfig:
    """As `effective_config`, without those changes that do not fit *config* (any more)."""
    cluster, broker = (configs.get((ResourceType.BROKER, name), {}) for name in ("", str(config.node_id)))
    return _in_effect(config, tuple(cluster.items()), tuple(broker.items())) if cluster or broker else config


# Asked for with every topic that is changed; the changes of brokers are the same nearly always.
@lru_cache(maxsize=2)
def _in_effect(config: BrokerConfig, cluster: Items, broker: Items) -> BrokerConfig:
    try:
        return config.with_changes(dict(cluster), dict(broker))
    except ConfigError:
        return _what_fits(config, cluster, broker)


def _what_fits(config: BrokerConfig, cluster: Items, broker: Items) -> BrokerConfig:
    """Leave out the fewest changes: should one cost the others, retention could fall back to what deletes records."""
    fitting = config
    kept: tuple[dict[str, str], dict[str, str]] = ({}, {})
    left = [(level, *item) for level, items in enumerate((cluster, broker)) for item in items]
    while left:
        reasons: dict[tuple[int, str, str], ConfigError] = {}
        for level, name, text in left:
            kept[level][name] = text
            try:
                fitting = config.with_changes(*kept)
            except ConfigError as problem:
                del kept[level][name]
                reasons[level, name, text] = problem
        if len(reasons) == len(left):
            for reason in reasons.values():
                log.warning("changed while the broker ran, and left out as it does not fit any more: %s", reason)
            break
        # A change that did not fit may fit together with a later one.
        left = list(reasons)
    return fitting


class EffectiveConfig:
    """The configuration of this broker and of its topics' logs, with the changes made while the broker runs.

    Topics that are configured alike share one `LogConfig`. ``on_changed`` is called when ``config`` may have changed.
    ``instance_defaults`` has the defaults of the topics of instances. ``find_instance`` returns the instance of a topic, whose bounds
    apply to what the topic does not set.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._configs: Mapping[ConfigKey, Mapping[str, str]] = {}
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        self.find_instance: FindInstance = find_no_instance
        self.config = static
        self.instance_defaults = InstanceDefaults()
        self.on_changed: Callable[[], None] = lambda: None

    def update(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        """Take over the changes in *configs*; those that do not fit the properties file are left out."""
        self._log_configs.clear()
        self._configs = configs
        self.config = config_in_effect(self._static, configs)
        self.instance_defaults = InstanceDefaults(configs, self.instance_defaults)

    def find_topic_defaults(self, topic: str) -> Mapping[str, str]:
        """Return what the topic's instance sets for configs that the topic does not set: its defaults, within its bounds."""
        defaults = self.instance_defaults.find(topic)
        instance = self.find_instance(topic)
        return defaults if instance is None else limit_defaults(self.config, defaults, instance.topic_bounds)

    def log_config_of(self, topic: str) -> LogConfig:
        """Return the configuration of a topic's log."""
        overrides = self._configs.get((ResourceType.TOPIC, topic), {})
        if defaults := self.find_topic_defaults(topic):
            overrides = {**defaults, **overrides}
        key = frozenset(overrides.items())
        if key not in self._log_configs:
            self._log_configs[key] = build_log_config(self.config, overrides)
        return self._log_configs[key]
