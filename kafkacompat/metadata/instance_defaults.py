"""The defaults of topic configs that instances have, under the configs of their topics and over the brokers' own values."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import DEFAULT_TOPIC_CONFIGS, Instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import ConfigKey
from kafkacompat.wire import entities

log = logging.getLogger(__name__)

NO_CONFIGS: Mapping[str, str] = {}


class _Entry(NamedTuple):
    """The defaults of one instance, read from the properties in ``given``."""

    given: Mapping[str, str]
    prefix: str
    adopted: Collection[str]
    defaults: Mapping[str, str]


class InstanceDefaults:
    """The defaults of all instances in *configs*; False if no instance has any.

    Instances that have not changed since *known* was built are not read again: there may be thousands of them.
    """

    def __init__(
        self, configs: Mapping[ConfigKey, Mapping[str, str]] | None = None, known: InstanceDefaults | None = None
    ) -> None:
        self._entries: dict[str, _Entry] = {}
        before = {} if known is None else known._entries
        for (kind, name), given in (configs or {}).items():
            if kind == ResourceType.INSTANCE and DEFAULT_TOPIC_CONFIGS in given:
                entry = before.get(name)
                is_same = entry is not None and (entry.given is given or entry.given == given)
                self._add(name, given, entry if is_same else None)
        self._by_prefix = {entry.prefix: entry.defaults for entry in self._entries.values()}
        self._by_topic = {topic: entry.defaults for entry in self._entries.values() for topic in entry.adopted}
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix}, reverse=True)

    def _add(self, name: str, given: Mapping[str, str], entry: _Entry | None) -> None:
        try:
            self._entries[name] = entry or _read_entry(name, given)
        except ConfigError as problem:
            log.error("The instance %s has no default topic configs: %s", name, problem)

    def __bool__(self) -> bool:
        return bool(self._entries)

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


def _read_entry(name: str, given: Mapping[str, str]) -> _Entry:
    instance = Instance(name, given)
    adopted = instance.tables.get(entities.TOPIC, {}).values()
    return _Entry(given, instance.prefix, adopted, instance.default_topic_configs)
