"""The defaults of topic configs that instances have, under the configs of their topics and over the brokers' own values."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import DEFAULT_TOPIC_CONFIGS, Instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey
from kafkacompat.wire import entities

log = logging.getLogger(__name__)

NO_CONFIGS: Mapping[str, str] = {}


class InstanceDefaults:
    """The defaults of all instances in *configs*; False if no instance has any."""

    def __init__(self, configs: Mapping[ConfigKey, Mapping[str, str]] | None = None) -> None:
        self._by_prefix: dict[str, Mapping[str, str]] = {}
        self._by_topic: dict[str, Mapping[str, str]] = {}
        for (kind, name), given in (configs or {}).items():
            if kind == ResourceType.INSTANCE and DEFAULT_TOPIC_CONFIGS in given:
                try:
                    self._add(Instance(name, given))
                except ConfigError as problem:
                    log.error("The instance %s has no default topic configs: %s", name, problem)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._by_prefix)

    def _add(self, instance: Instance) -> None:
        defaults, adopted = instance.default_topic_configs, instance.tables.get(entities.TOPIC, {})
        self._by_prefix[instance.prefix] = defaults
        self._by_topic.update(dict.fromkeys(adopted.values(), defaults))

    def find(self, topic: str) -> Mapping[str, str]:
        """Return the defaults of a topic, which is given by its physical name."""
        if topic in self._by_topic:
            return self._by_topic[topic]
        for length in self._lengths:
            defaults = self._by_prefix.get(topic[:length])
            if defaults is not None:
                return defaults
        return NO_CONFIGS

    def merge(self, topic: str, overrides: Mapping[str, str]) -> Mapping[str, str]:
        """Return the configs of a topic over the defaults of its instance."""
        defaults = self.find(topic)
        return {**defaults, **overrides} if defaults else overrides
