"""What else than topics can be configured while the broker runs: brokers, groups, client metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from kafkacompat.config.broker import PROPERTIES, BrokerConfig
from kafkacompat.config.properties import ConfigError, Property, index_table
from kafkacompat.config.tables import topics
from kafkacompat.config.values import Value

GROUP_CONFIGS: Mapping[str, Property] = index_table(topics.GROUPS)
CLIENT_METRICS_CONFIGS: Mapping[str, Property] = index_table(topics.CLIENT_METRICS)


class ResourceType(IntEnum):
    """What a configuration belongs to, by the numbers of DescribeConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_MATCHES = ("client_instance_id", "client_id", "client_software_name", "client_software_version")
_MATCH = re.compile(rf"\s*({'|'.join(_MATCHES)}|client_source_address|client_source_port)\s*=([^=]+)")
_PROTOCOLS = ("consumer", "share", "streams")


def group_default(config: BrokerConfig, name: str) -> Value:
    """The broker's value of a group config, or the config's own default where the broker has none."""
    broker_name = group_synonym(name)
    return config.value(broker_name) if broker_name else GROUP_CONFIGS[name].default_value


def group_synonym(name: str) -> str | None:
    """The broker property behind a group config, if there is one."""
    return f"group.{name}" if f"group.{name}" in PROPERTIES else None


def check_group_configs(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Refuse overrides that a group may not have; raises ConfigError."""
    for name, text in overrides.items():
        if name not in GROUP_CONFIGS:
            raise ConfigError(f"Unknown group config name: {name}")
        _check_bounds(config, name, GROUP_CONFIGS[name].parse(text))
    for protocol in _PROTOCOLS:
        session, heartbeat = (
            _group_number(config, overrides, f"{protocol}.{name}")
            for name in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if session <= heartbeat:
            least = f"{protocol}.heartbeat.interval.ms={heartbeat}"
            raise ConfigError(f"{protocol}.session.timeout.ms={session} is not valid: it takes more than {least}")


def _group_number(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> int:
    value = GROUP_CONFIGS[name].parse(overrides[name]) if name in overrides else group_default(config, name)
    assert isinstance(value, int)
    return value


def _check_bounds(config: BrokerConfig, name: str, value: Value) -> None:
    """The broker bounds what a group may set, by group.<protocol>.min.<...> and group.<protocol>.max.<...>."""
    protocol, _, rest = name.partition(".")
    least, most = (f"group.{protocol}.{bound}.{rest.removeprefix('num.')}" for bound in ("min", "max"))
    if not isinstance(value, int):
        return
    if least in PROPERTIES and value < config.int(least):
        raise ConfigError(f"{name}={value} is not valid: it takes at least {least}={config.int(least)}")
    if most in PROPERTIES and value > config.int(most):
        raise ConfigError(f"{name}={value} is not valid: it takes at most {most}={config.int(most)}")


def check_client_metrics_configs(overrides: Mapping[str, str]) -> None:
    """Refuse overrides that a client metrics subscription may not have; raises ConfigError."""
    for name, text in overrides.items():
        if name not in CLIENT_METRICS_CONFIGS:
            raise ConfigError(f"Unknown client metrics configuration: {name}")
        value = CLIENT_METRICS_CONFIGS[name].parse(text)
        if name == "match" and isinstance(value, tuple) and not all(map(_MATCH.fullmatch, value)):
            raise ConfigError(f"match={text} is not valid: it takes a list of name=pattern with a client's property")


def check_broker_configs(overrides: Mapping[str, str], *, per_broker: bool) -> None:
    """Refuse changes that a running broker cannot take; raises ConfigError."""
    for name in overrides:
        known = PROPERTIES.get(name)
        if known is not None and not known.dynamic:
            raise ConfigError(f"{name} cannot be changed while the broker runs: set it in server.properties")
        if known is not None and known.per_broker and not per_broker:
            raise ConfigError(f"{name} can only be changed for one broker: name its id")
