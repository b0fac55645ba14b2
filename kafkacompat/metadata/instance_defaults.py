"""The defaults of topic configs that instances have, under the configs of their topics and over the brokers' own values."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kafkacompat.config import ConfigError
from kafkacompat.config.instances import DEFAULT_TOPIC_CONFIGS, read_instance
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import Configs, list_changed_configs
from kafkacompat.wire import entities

log = logging.getLogger(__name__)

NO_CONFIGS: Mapping[str, str] = {}


class _Entry(NamedTuple):
    """The defaults of one instance, and the names of its topics."""

    prefix: str
    adopted: Collection[str]
    defaults: Mapping[str, str]


class InstanceDefaults:
    """The defaults of all instances in *configs*; False if no instance has any.

    Only instances that have changed since *known* was built are read: there may be thousands of them.
    """

    def __init__(self, configs: Configs | None = None, known: InstanceDefaults | None = None) -> None:
        self._configs: Configs = {} if configs is None else configs
        self._entries: dict[str, _Entry] = {} if known is None else known._entries
        self._by_prefix: dict[str, Mapping[str, str]] = {} if known is None else known._by_prefix
        self._by_topic: dict[str, Mapping[str, str]] = {} if known is None else known._by_topic
        self._lengths: list[int] = [] if known is None else known._lengths
        changed = list_changed_configs({} if known is None else known._configs, self._configs)
        names = [name for kind, name in changed if kind == ResourceType.INSTANCE]
        if names:
            self._read(names)

    def _read(self, names: Iterable[str]) -> None:
        """Replace the entries of some instances, in copies of what another object may hold."""
        self._entries, self._by_prefix = dict(self._entries), dict(self._by_prefix)
        self._by_topic = dict(self._by_topic)
        for name in names:
            if (entry := self._entries.pop(name, None)) is not None:
                self._by_prefix.pop(entry.prefix, None)
                for topic in entry.adopted:
                    self._by_topic.pop(topic, None)
        for name in names:
            given = self._configs.get((ResourceType.INSTANCE, name), NO_CONFIGS)
            if DEFAULT_TOPIC_CONFIGS in given:
                self._add(name, given)
        self._lengths = sorted(set(map(len, self._by_prefix)), reverse=True)

    def _add(self, name: str, given: Mapping[str, str]) -> None:
        try:
            entry = self._entries[name] = _read_entry(name, given)
        except ConfigError as problem:
            log.error("The instance %s has no default topic configs: %s", name, problem)
        else:
            self._by_prefix[entry.prefix] = entry.defaults
            self._by_topic.update(dict.fromkeys(entry.adopted, entry.defaults))

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


def _read_entry(name: str, given: Mapping[str, str]) -> _Entry:
    instance = read_instance(name, given)
    return _Entry(instance.prefix, instance.list_adopted(entities.TOPIC), instance.default_topic_configs)
