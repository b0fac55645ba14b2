"""Describes a resource's configuration to a client: each entry's value and its source.

A value comes from the strongest of its *synonyms*: the value set for the resource itself, for this broker, for all
brokers, in the properties file, or the default. Several properties may mean the same (log.retention.ms and
log.retention.hours). Kafka lists them from the first one that is set under its own name; this broker does the same, so that
tools show the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import dropwhile

from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS, BrokerConfig, Property
from kafkacompat.config.broker import AUTHORIZER_PROPERTIES, ZOOKEEPER_PROPERTIES, find_unit_synonyms
from kafkacompat.config.dynamic import find_property
from kafkacompat.config.instances import INSTANCE_PROPERTIES
from kafkacompat.config.listeners import base_property_name
from kafkacompat.config.resources import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    ResourceType,
    find_group_default,
    find_group_synonym,
)
from kafkacompat.config.sources import ConfigSource
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS
from kafkacompat.config.topics import find_topic_value
from kafkacompat.config.values import Value, format_value
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.metadata.instance_defaults import NO_CONFIGS
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

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
    """Describes configurations: *static* comes from the properties file, *effective* includes dynamic changes.

    Entries of several topics or groups may be the same object.
    """

    def __init__(self, static: BrokerConfig, effective: BrokerConfig, image: MetadataImage) -> None:
        self._effective = effective
        self._topic_defaults: dict[str, DescribeConfigsResourceResult] = {}
        self._group_defaults: list[DescribeConfigsResourceResult] = []
        ids = {name: str(static.node_id) for name in ("node.id", "broker.id")}
        self._levels: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, image.config(ResourceType.BROKER, str(static.node_id))),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, image.config(ResourceType.BROKER, "")),
            (ConfigSource.STATIC_BROKER_CONFIG, {**ids, **static.given}),
        )

    def describe_topic(
        self, overrides: Mapping[str, str], defaults: Mapping[str, str] = NO_CONFIGS
    ) -> list[DescribeConfigsResourceResult]:
        """Describe every config of a topic with these overrides, over the *defaults* of its instance."""
        return [
            self._describe_topic_config(row, overrides, defaults)
            if name in overrides or name in defaults
            else self._describe_topic_default(row)
            for name, row in sorted(TOPIC_CONFIGS.items())
            if not row.internal or name in overrides
        ]

    def _describe_topic_default(self, row: Property) -> DescribeConfigsResourceResult:
        """Return the entry of topics without an override, built once, as a request may name thousands of topics."""
        if row.name not in self._topic_defaults:
            self._topic_defaults[row.name] = self._describe_topic_config(row, {})
        return self._topic_defaults[row.name]

    def _describe_topic_config(
        self, row: Property, overrides: Mapping[str, str], defaults: Mapping[str, str] = NO_CONFIGS
    ) -> DescribeConfigsResourceResult:
        inherited = (
            self._list_broker_synonyms(TOPIC_CONFIG_SYNONYMS[row.name][0].name)
            if row.name in TOPIC_CONFIG_SYNONYMS
            else []
        )
        if row.name in defaults:
            inherited = [self._build_instance_default(row, defaults[row.name]), *inherited]
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG if row.name in overrides else None
        value = find_topic_value(self._effective, {**defaults, **overrides}, row.name)
        return self._build_own_entry(row, value, source, inherited)

    @staticmethod
    def _build_instance_default(row: Property, text: str) -> DescribeConfigsSynonym:
        """Show the default of an instance as a default of all brokers, which the instance's clients take it for."""
        synonyms = TOPIC_CONFIG_SYNONYMS.get(row.name)
        return DescribeConfigsSynonym(
            name=synonyms[0].name if synonyms else row.name,
            value=text,
            source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        )

    def describe_group(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Describe every config of a group with these overrides."""
        if not overrides:
            # A group need not exist to be described, so a request may name thousands.
            self._group_defaults = self._group_defaults or self._describe_group({})
            return self._group_defaults
        return self._describe_group(overrides)

    def _describe_group(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        entries = []
        for name, row in sorted(GROUP_CONFIGS.items()):
            default = find_group_default(self._effective, name)
            value = row.parse(overrides[name]) if name in overrides else default
            broker_name = find_group_synonym(name)
            inherited = (
                self._list_broker_synonyms(broker_name)
                if broker_name
                else [_build_synonym(row, default, ConfigSource.DEFAULT_CONFIG)]
            )
            entries.append(
                self._build_own_entry(row, value, ConfigSource.GROUP_CONFIG if name in overrides else None, inherited)
            )
        return entries

    def describe_client_metrics(self, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Describe every config of a client metrics subscription with these overrides."""
        return [
            self._build_own_entry(
                row,
                row.parse(overrides[name]) if name in overrides else row.default_value,
                ConfigSource.CLIENT_METRICS_CONFIG if name in overrides else None,
                [],
            )
            for name, row in sorted(CLIENT_METRICS_CONFIGS.items())
        ]

    def describe_instance(self, given: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
        """Describe every property of an instance that has these; a value is shown as it was given.

        A list that is too long for a string of the protocol has several entries.
        """
        from kafkacompat.tenancy.instance_messages import split_list  # A broker without instances does not load it.

        entries = []
        for name, row in sorted(INSTANCE_PROPERTIES.items()):
            default = DescribeConfigsSynonym(name=name, value=row.default, source=ConfigSource.DEFAULT_CONFIG)
            own = DescribeConfigsSynonym(
                name=name, value=None if row.sensitive else given.get(name), source=ConfigSource.INSTANCE_CONFIG
            )
            if own.value is not None:
                own.value = next(split_list(own.value))
            synonyms = [own, default] if name in given else [default]
            value = given.get(name, row.default)
            for part in [None] if value is None else split_list(value):
                entries.append(_build_entry(name, row, part, synonyms, read_only="O" in row.flags))
        return entries

    def describe_broker(self) -> list[DescribeConfigsResourceResult]:
        """Describe every property of this broker; an unknown property has no value."""
        known = {name for name, row in PROPERTIES.items() if not row.internal}
        if self._effective.value("zookeeper.connect") is None:
            # Kafka's last releases, which a single node resembles, do not have these properties.
            known -= ZOOKEEPER_PROPERTIES
        if not self._effective.string("authorizer.class.name"):
            known -= AUTHORIZER_PROPERTIES
        return self.describe_properties(known | set(self._effective.given))

    def describe_properties(self, names: Collection[str]) -> list[DescribeConfigsResourceResult]:
        """Describe some properties of this broker."""
        return [
            self._build_broker_entry(name, self._find_text(name), self._list_broker_synonyms(name))
            for name in sorted(names)
        ]

    def _find_text(self, name: str) -> str | None:
        return self._effective.text(name) if name in PROPERTIES else self._effective.given[name]

    def describe_all_brokers(self) -> list[DescribeConfigsResourceResult]:
        """Describe the configs that are set for all brokers."""
        configs = dict(self._levels)[ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG]
        entries = []
        for name, text in sorted(configs.items()):
            synonyms = [
                synonym
                for synonym in self._list_broker_synonyms(name)
                if synonym.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
            ]
            entries.append(self._build_broker_entry(name, text, synonyms))
        return entries

    def _build_own_entry(
        self, row: Property, value: Value, source: ConfigSource | None, inherited: list[DescribeConfigsSynonym]
    ) -> DescribeConfigsResourceResult:
        """Build an entry of a topic, a group or a subscription; *source* is None unless it is set there."""
        own = [] if source is None else [_build_synonym(row, value, source)]
        return _build_entry(row.name, row, format_value(value), [*own, *inherited], read_only=False)

    def _build_broker_entry(
        self, name: str, value: str | None, synonyms: list[DescribeConfigsSynonym]
    ) -> DescribeConfigsResourceResult:
        read_only = name not in PROPERTIES or not PROPERTIES[name].dynamic
        return _build_entry(name, find_property(name), value, synonyms, read_only=read_only)

    def _list_broker_synonyms(self, name: str) -> list[DescribeConfigsSynonym]:
        """List the places where a broker's property is set, the strongest first."""
        names = tuple(dict.fromkeys((*find_unit_synonyms(name), base_property_name(name))))
        return list(dropwhile(lambda synonym: synonym.name != name, self._list_all_synonyms(names)))

    def _list_all_synonyms(self, names: tuple[str, ...]) -> Iterator[DescribeConfigsSynonym]:
        for source, configs in self._levels:
            for name in names:
                if name in configs:
                    yield DescribeConfigsSynonym(name=name, value=_hide_secret(name, configs[name]), source=source)
        for name in names:
            row = PROPERTIES.get(name)
            if row is not None and row.default is not None and not _is_dynamic_only(row):
                yield DescribeConfigsSynonym(
                    name=name, value=_hide_secret(name, row.default), source=ConfigSource.DEFAULT_CONFIG
                )


def _is_dynamic_only(row: Property) -> bool:
    """Return whether Kafka accepts a property only as a dynamic change, like the rates of throttled replication."""
    return row.internal and row.dynamic


def _hide_secret(name: str, text: str) -> str | None:
    """Return a value as clients may see it: None for secrets and for unknown properties, which may be secrets."""
    row = find_property(name)
    return None if row is None or row.sensitive else text


def _build_synonym(row: Property, value: Value, source: ConfigSource) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=row.name, value=format_value(value), source=source)


def _build_entry(
    name: str, row: Property | None, value: str | None, synonyms: list[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    sensitive = row is None or row.sensitive
    return DescribeConfigsResourceResult(
        name=name,
        value=None if sensitive else value,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=sensitive,
        synonyms=synonyms,
        config_type=CONFIG_TYPES[row.kind] if row else 0,
        documentation=row.text if row else None,
    )
