"""One instance: what its operator has configured, as values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables.instances import INSTANCES
from kafkacompat.config.values import Value
from kafkacompat.wire import entities

INSTANCE_PROPERTIES: Mapping[str, Property] = parse_tables(INSTANCES)
DEFAULT_TOPIC_CONFIGS = "default.topic.configs"
SUPER_USERS = "super.users"
ACTIVE = "active"
DELETING = "deleting"
NO_LIMIT = -1
MAX_NAME_LENGTH = 64
LONG_NAME_CONFIG = "kafkacompat.instance.topic"
"""The topic config that keeps the client's name of a topic with a short physical name."""
MAX_INSTANCE_VALUE_LENGTH = 512 * 1024
"""The longest value of a property: a whitelist may have ten thousand networks."""

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")
_TABLES = {
    entities.TOPIC: "topic.names",
    entities.GROUP: "group.names",
    entities.TRANSACTIONAL_ID: "transactional.id.names",
    entities.USER: "user.names",
}
_NEVER_DEFAULTS = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "unclean.leader.election.enable",
        LONG_NAME_CONFIG,
    }
)
"""Topic configs that an instance has no default of: they name single partitions, or may lose records."""
_ADDRESS = re.compile(r"(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")
MAX_PORT = 65535


class InstanceAddress(NamedTuple):
    """An address that leads to an instance; ``host`` is "" for every address of the broker."""

    protocol: str
    host: str
    port: int


def check_instance_name(name: str) -> None:
    """Raise ConfigError for a name that no instance may have. It has no dot, as the prefix ends in one."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        takes = f"1 to {MAX_NAME_LENGTH} ASCII letters, digits, '_' and '-', the first no sign"
        raise ConfigError(f"the instance name '{name}' is not valid: it takes {takes}")


def find_prefix(name: str, given: Mapping[str, str]) -> str:
    """Return the beginning of all physical names of an instance with these properties."""
    return given.get("name.prefix") or f"{name}."


class Instance:
    """One instance by its properties, which are those of `INSTANCE_PROPERTIES`.

    Raises ConfigError for a property that is not known or not valid.
    """

    def __init__(self, name: str, given: Mapping[str, str]) -> None:
        self.name = name
        self.given: Mapping[str, str] = MappingProxyType(dict(given))
        self._values: dict[str, Value] = {}
        for option, text in given.items():
            if option not in INSTANCE_PROPERTIES:
                raise ConfigError(f"{option} is not a property of instances{did_you_mean(option, INSTANCE_PROPERTIES)}")
            self._values[option] = INSTANCE_PROPERTIES[option].parse(text)

    def __repr__(self) -> str:
        return f"Instance({self.name!r})"

    def value(self, option: str) -> Value:
        """Return the value of a property, or its default."""
        return self._values[option] if option in self._values else INSTANCE_PROPERTIES[option].default_value

    def int(self, option: str) -> int:
        """Return a whole number."""
        value = self.value(option)
        assert isinstance(value, int)
        return value

    def string(self, option: str) -> str:
        """Return a text; "" if there is none."""
        value = self.value(option)
        return "" if value is None else str(value)

    def list(self, option: str) -> tuple[str, ...]:
        """Return the elements of a list."""
        value = self.value(option)
        assert isinstance(value, tuple)
        return value

    @property
    def is_active(self) -> bool:
        """Whether the instance serves clients."""
        return self.string("state") == ACTIVE

    @property
    def cluster_id(self) -> str:
        """The cluster id that its clients see."""
        return self.string("cluster.id")

    @cached_property
    def prefix(self) -> str:
        """The beginning of all its physical names."""
        return find_prefix(self.name, self.given)

    @cached_property
    def secret(self) -> bytes:
        """The key of its topic ids and short names."""
        return self.string("secret").encode()

    @cached_property
    def tables(self) -> Mapping[str, Mapping[str, str]]:
        """The physical names of adopted things, by entity and by the name that clients know; raises ConfigError."""
        return {entity: self._parse_table(option) for entity, option in _TABLES.items() if self.list(option)}

    def _parse_table(self, option: str) -> Mapping[str, str]:
        table: dict[str, str] = {}
        for entry in self.list(option):
            name, _, physical = entry.partition(":")
            if not name or name in table:
                reason = "it is there twice" if name else "it takes name:physical, or a name that is both"
                raise ConfigError(f"{option} is not valid at {entry!r}: {reason}")
            table[name] = physical or name
        return table

    @cached_property
    def super_users(self) -> tuple[str, ...]:
        """The users who may do everything in it, as User:name; raises ConfigError."""
        for entry in self.list(SUPER_USERS):
            if not entry.startswith("User:") or entry == "User:":
                raise ConfigError(f"{SUPER_USERS} is not valid at {entry!r}: it takes User:name")
        return self.list(SUPER_USERS)

    @cached_property
    def default_topic_configs(self) -> Mapping[str, str]:
        """The defaults of its topics' configs, which are not checked; raises ConfigError.

        An element without a name belongs to the list before it: ``cleanup.policy=compact,delete``.
        """
        configs: dict[str, str] = {}
        name = ""
        for entry in self.list(DEFAULT_TOPIC_CONFIGS):
            before, equals, value = entry.partition("=")
            if equals and before and before not in configs:
                name, configs[before] = before, value
            elif equals or not name:
                reason = "it is there twice" if before in configs else "it takes name=value"
                raise ConfigError(f"{DEFAULT_TOPIC_CONFIGS} is not valid at {entry!r}: {reason}")
            else:
                configs[name] += f",{entry}"
        return configs

    @cached_property
    def addresses(self) -> tuple[InstanceAddress, ...]:
        """The addresses that lead to the instance; raises ConfigError."""
        return tuple(map(_parse_address, self.list("listeners")))


def _parse_address(text: str) -> InstanceAddress:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= MAX_PORT:
        takes = f"PROTOCOL://host:port with a port of 1 to {MAX_PORT}"
        raise ConfigError(f"listeners is not valid at {text!r}: it takes {takes}")
    return InstanceAddress(match[1], match[2], int(match[3]))


def check_instance(
    name: str, given: Mapping[str, str], others: Mapping[str, Mapping[str, str]], topics: Collection[str]
) -> None:
    """Check the properties of an instance beside those of all *others*, and beside the cluster's *topics*.

    Raises ConfigError, one sentence. No properties at all remove the instance.
    """
    check_instance_name(name)
    if not given:
        return
    instance = Instance(name, given)
    _ = instance.tables, instance.addresses, instance.super_users
    _check_default_topic_configs(instance)
    if not instance.cluster_id or not instance.secret:
        raise ConfigError(
            f"the instance {name} needs cluster.id and secret: create it by `kafkacompat instances create`"
        )
    for other_name, other_given in others.items():
        _check_apart(instance, Instance(other_name, other_given))


def _check_default_topic_configs(instance: Instance) -> None:
    for option in instance.default_topic_configs.keys() & _NEVER_DEFAULTS:
        raise ConfigError(f"{DEFAULT_TOPIC_CONFIGS} is not valid at {option}: it is set for each topic by itself")


def _check_apart(instance: Instance, other: Instance) -> None:
    """Raise ConfigError if two instances share an address or could share a physical name."""
    mine, theirs = instance.prefix, other.prefix
    if mine.startswith(theirs) or theirs.startswith(mine):
        raise ConfigError(
            f"name.prefix={mine} could name what belongs to the instance {other.name}, whose prefix is {theirs}"
        )
    for address in instance.addresses:
        if any(address.port == taken.port and _meet(address.host, taken.host) for taken in other.addresses):
            entry = f"{address.host}:{address.port}"
            raise ConfigError(f"the address {entry} leads to the instance {other.name} already: take another port")
    for option in ("sni.hosts", "sasl.users"):
        for entry in set(instance.list(option)) & set(other.list(option)):
            raise ConfigError(f"{option}={entry} leads to the instance {other.name} already")
    for entity, table in instance.tables.items():
        for physical in table.values():
            if physical.startswith(theirs) or physical in other.tables.get(entity, {}).values():
                raise ConfigError(f"{_TABLES[entity]}: {physical} belongs to the instance {other.name} already")
    for table in other.tables.values():
        for physical in table.values():
            if physical.startswith(mine):
                raise ConfigError(
                    f"name.prefix={mine} could name {physical}, which belongs to the instance {other.name}"
                )


def _meet(host: str, other: str) -> bool:
    wild = ("", "0.0.0.0", "::")
    return host == other or host in wild or other in wild
