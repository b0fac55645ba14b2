"""What a resource's configuration looks like to a client: each entry's value and where it comes from.

A value comes from the strongest of its *synonyms*: what was set for the resource itself, for this broker,
for all brokers, in the properties file, or the default. Of several properties for the same thing (such as
log.retention.ms and log.retention.hours) Kafka counts only those from the strongest one on that is set
under its own name; so do we, that tools show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile

from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS, BrokerConfig, Property
from kafkacompat.config.broker import synonyms
from kafkacompat.config.dynamic import property_of
from kafkacompat.config.listeners import base_name
from kafkacompat.config.resources import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    ResourceType,
    group_default,
    group_synonym,
)
from kafkacompat.config.topic_defaults import SYNONYMS
from kafkacompat.config.topics import topic_value
from kafkacompat.config.values import Value, format_value
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym


class Source(IntEnum):
    """Where a value comes from, by the numbers of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    PROPERTIES_FILE = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


CONFIG_TYPES = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


class ConfigEntries:
    """Describes configurations: *static* is the properties file's, *effective* the one in effect.

    Entries of several topics or groups may be the same object.
    """

    def __init__(self, static: BrokerConfig, effective: BrokerConfig, image: MetadataImage) -> None:
        self._effective = effective
        self._topic_defaults: dict[str, DescribeConfigsResourceResult] = {}
        self._group_defaults: list[DescribeConfigsResourceResult] = []
        ids = {name: str(static.node_id) for name in ("node.id", "broker.id")}
        self._levels: tuple[tuple[Source, Mapping[str, str]], ...] = (
            (Source.BROKER, image.config(ResourceType.BROKER, str(static.node_id))),
            (Source.ALL_BROKERS, image.config(ResourceType.BROKER, "")),
            (Source.PROPERTIES_FILE, {**ids, **static.given}),
        )

    def topic(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Every config of a topic with these overrides."""
        return [
            self._topic_config(row, overrides) if name in overrides else self._topic_default(row)
            for name, row in sorted(TOPIC_CONFIGS.items())
            if not row.internal or name in overrides
        ]

    def _topic_default(self, row: Property) -> DescribeConfigsResourceResult:
        """What every topic has that does not set it: made once, for a request may name thousands of topics."""
        if row.name not in self._topic_defaults:
            self._topic_defaults[row.name] = self._topic_config(row, {})
        return self._topic_defaults[row.name]

    def _topic_config(self, row: Property, overrides: Mapping[str, str]) -> DescribeConfigsResourceResult:
        behind = self._broker_synonyms(SYNONYMS[row.name][0].name) if row.name in SYNONYMS else []
        source = Source.TOPIC if row.name in overrides else None
        return self._own(row, topic_value(self._effective, overrides, row.name), source, behind)

    def group(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Every config of a group with these overrides."""
        if not overrides:
            # A group need not exist to be described, so a request may name thousands.
            self._group_defaults = self._group_defaults or self._group({})
            return self._group_defaults
        return self._group(overrides)

    def _group(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        entries = []
        for name, row in sorted(GROUP_CONFIGS.items()):
            default = group_default(self._effective, name)
            value = row.parse(overrides[name]) if name in overrides else default
            broker_name = group_synonym(name)
            behind = self._broker_synonyms(broker_name) if broker_name else [_synonym(row, default, Source.DEFAULT)]
            entries.append(self._own(row, value, Source.GROUP if name in overrides else None, behind))
        return entries

    def client_metrics(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Every config of a client metrics subscription with these overrides."""
        return [
            self._own(
                row,
                row.parse(overrides[name]) if name in overrides else row.default_value,
                Source.CLIENT_METRICS if name in overrides else None,
                [],
            )
            for name, row in sorted(CLIENT_METRICS_CONFIGS.items())
        ]

    def broker(self) -> list[DescribeConfigsResourceResult]:
        """Every property of this broker; of what it does not know only the name."""
        known = {name for name, row in PROPERTIES.items() if not row.internal}
        return [
            self._broker(name, self._text(name), self._broker_synonyms(name))
            for name in sorted(known | set(self._effective.given))
        ]

    def _text(self, name: str) -> str | None:
        return self._effective.text(name) if name in PROPERTIES else self._effective.given[name]

    def all_brokers(self) -> list[DescribeConfigsResourceResult]:
        """What was set for all brokers."""
        configs = dict(self._levels)[Source.ALL_BROKERS]
        entries = []
        for name, text in sorted(configs.items()):
            behind = [each for each in self._broker_synonyms(name) if each.source == Source.ALL_BROKERS]
            entries.append(self._broker(name, text, behind))
        return entries

    def _own(
        self, row: Property, value: Value, source: Source | None, behind: list[DescribeConfigsSynonym]
    ) -> DescribeConfigsResourceResult:
        """An entry of a topic, a group or a subscription, which may have been set there (*source*)."""
        own = [] if source is None else [_synonym(row, value, source)]
        return _entry(row.name, row, format_value(value), [*own, *behind], read_only=False)

    def _broker(
        self, name: str, value: str | None, behind: list[DescribeConfigsSynonym]
    ) -> DescribeConfigsResourceResult:
        read_only = name not in PROPERTIES or not PROPERTIES[name].dynamic
        return _entry(name, property_of(name), value, behind, read_only=read_only)

    def _broker_synonyms(self, name: str) -> list[DescribeConfigsSynonym]:
        """Where a broker's property is set, the strongest place first."""
        names = tuple(dict.fromkeys((*synonyms(name), base_name(name))))
        return list(dropwhile(lambda synonym: synonym.name != name, self._everywhere(names)))

    def _everywhere(self, names: tuple[str, ...]) -> Iterator[DescribeConfigsSynonym]:
        for source, configs in self._levels:
            for name in names:
                if name in configs:
                    yield DescribeConfigsSynonym(name=name, value=_shown(name, configs[name]), source=source)
        for name in names:
            row = PROPERTIES.get(name)
            if row is not None and row.default is not None and not _only_while_running(row):
                yield DescribeConfigsSynonym(name=name, value=_shown(name, row.default), source=Source.DEFAULT)


def _only_while_running(row: Property) -> bool:
    """Whether Kafka knows a property only as a change made while it runs: the rates of throttled replication."""
    return row.internal and row.dynamic


def _shown(name: str, text: str) -> str | None:
    """A value as clients may see it: nothing of secrets, and of what may be one."""
    row = property_of(name)
    return None if row is None or row.sensitive else text


def _synonym(row: Property, value: Value, source: Source) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=row.name, value=format_value(value), source=source)


def _entry(
    name: str, row: Property | None, value: str | None, behind: list[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    sensitive = row is None or row.sensitive
    return DescribeConfigsResourceResult(
        name=name,
        value=None if sensitive else value,
        read_only=read_only,
        config_source=behind[0].source if behind else Source.DEFAULT,
        is_sensitive=sensitive,
        synonyms=behind,
        config_type=CONFIG_TYPES[row.kind] if row else 0,
        documentation=row.text if row else None,
    )
