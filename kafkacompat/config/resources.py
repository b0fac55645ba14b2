"""The configurations that may change while the broker runs, except topics': those of brokers, groups and client metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from kafkacompat.config.broker import PROPERTIES, BrokerConfig
from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables import topics
from kafkacompat.config.values import Value

GROUP_CONFIGS: Mapping[str, Property] = parse_tables(topics.GROUPS)
CLIENT_METRICS_CONFIGS: Mapping[str, Property] = parse_tables(topics.CLIENT_METRICS)


class ResourceType(IntEnum):
    """The kinds of resources that have configurations, by the numbers of DescribeConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
    INSTANCE = 100
    """Not one of Kafka's: the properties of an instance (`kafkacompat.config.instances`)."""


_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
MIN_INTERVAL_MS = 100
MAX_INTERVAL_MS = 3_600_000
_MATCHES = ("client_instance_id", "client_id", "client_software_name", "client_software_version")
_MATCH = re.compile(rf"\s*({'|'.join(_MATCHES)}|client_source_address|client_source_port)\s*=([^=]+)")


class InvalidRequestError(ConfigError):
    """An error that Kafka reports as INVALID_REQUEST instead of INVALID_CONFIG."""


_PROTOCOLS = ("consumer", "share", "streams")


def is_node_id(name: str, node_id: int) -> bool:
    """Return whether a resource's name is this node's id; as in Kafka, "01" is 1."""
    return _WHOLE.fullmatch(name) is not None and int(name) == node_id


def find_group_default(config: BrokerConfig, name: str) -> Value:
    """Return the broker's value of a group config, or the config's own default where the broker has no such property."""
    broker_name = find_group_synonym(name)
    return config.value(broker_name) if broker_name else GROUP_CONFIGS[name].default_value


def find_group_synonym(name: str) -> str | None:
    """Return the broker's property that sets a group config for all groups, if there is one."""
    return f"group.{name}" if f"group.{name}" in PROPERTIES else None


def check_group_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError for overrides that a group may not have."""
    for name, text in overrides.items():
        if name not in GROUP_CONFIGS:
            raise ConfigError(f"{name} is not a config of groups{did_you_mean(name, GROUP_CONFIGS)}")
        _check_bounds(config, name, GROUP_CONFIGS[name].parse(text))
    for protocol in _PROTOCOLS:
        session, heartbeat = (
            _find_group_value(config, overrides, f"{protocol}.{name}")
            for name in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if session <= heartbeat:
            least = f"{protocol}.heartbeat.interval.ms={heartbeat}"
            raise ConfigError(f"{protocol}.session.timeout.ms={session} is not valid: it takes more than {least}")


def _find_group_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> int:
    value = GROUP_CONFIGS[name].parse(overrides[name]) if name in overrides else find_group_default(config, name)
    assert isinstance(value, int)
    return value


def check_group_defaults(config: BrokerConfig) -> None:
    """Raise ConfigError for a broker's value for all groups that is out of the broker's own bounds."""
    for name in GROUP_CONFIGS:
        if find_group_synonym(name):
            _check_bounds(config, f"group.{name}", find_group_default(config, name))


def _check_bounds(config: BrokerConfig, name: str, value: Value) -> None:
    """Check the bounds of the broker, which are group.<protocol>.min.<...> and group.<protocol>.max.<...>."""
    protocol, _, rest = name.removeprefix("group.").partition(".")
    least, most = (f"group.{protocol}.{bound}.{rest.removeprefix('num.')}" for bound in ("min", "max"))
    if not isinstance(value, int):
        return
    if least in PROPERTIES and value < config.int(least):
        raise ConfigError(f"{name}={value} is not valid: it takes at least {least}={config.int(least)}")
    if most in PROPERTIES and value > config.int(most):
        raise ConfigError(f"{name}={value} is not valid: it takes at most {most}={config.int(most)}")


def check_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Check the overrides of a client metrics subscription.

    Raises InvalidRequestError for an unknown name and for an interval out of bounds, ConfigError for other errors.
    """
    for name, text in overrides.items():
        if name not in CLIENT_METRICS_CONFIGS:
            raise InvalidRequestError(f"{name} is not a config of client metrics subscriptions")
        value = CLIENT_METRICS_CONFIGS[name].parse(text)
        if isinstance(value, int) and not MIN_INTERVAL_MS <= value <= MAX_INTERVAL_MS:
            words = f"it takes a whole number from {MIN_INTERVAL_MS} to {MAX_INTERVAL_MS}"
            raise InvalidRequestError(f"{name}={text} is not valid: {words}")
        if name == "match" and isinstance(value, tuple) and not all(map(_is_match, value)):
            raise ConfigError(f"match={text} is not valid: it takes a list of name=pattern with a client's property")


def _is_match(text: str) -> bool:
    """Return whether *text* is a client's property and a regular expression for it."""
    match = _MATCH.fullmatch(text)
    try:
        return match is not None and re.compile(match[2]) is not None
    except (re.error, OverflowError, RecursionError):
        return False
