"""One instance: what its operator has configured, as values."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from kafkacompat.config.listeners import LISTENER_PREFIX, MAX_PORT
from kafkacompat.config.networks import Networks, parse_networks
from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables.instances import INSTANCES
from kafkacompat.config.values import Value
from kafkacompat.wire import entities

INSTANCE_PROPERTIES: Mapping[str, Property] = parse_tables(INSTANCES)
_NOTHING: frozenset[str] = frozenset()
_DEFAULTS: Mapping[str, Value] = {name: row.default_value for name, row in INSTANCE_PROPERTIES.items()}
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

_NAME = r"[a-zA-Z0-9][a-zA-Z0-9_-]*"
TABLES = {
    entities.TOPIC: "topic.names",
    entities.GROUP: "group.names",
    entities.TRANSACTIONAL_ID: "transactional.id.names",
    entities.USER: "user.names",
}
_ADDRESS = r"(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})"
_BROKER_ADDRESS = r"\[?([0-9a-zA-Z\-%._:{}]+)\]?:([0-9]{1,5})"
EVERY_USER = "*"
"""In sasl.users: every user of the instance."""
ARROW = "=>"
"""Between the pattern of a renaming and its replacement."""
BROKER_ID = "{id}"
"""In sni.advertised: the id of the broker."""


_known: dict[str, Instance] = {}
"""The instances that were read last, so that a check beside a thousand others reads only those that have changed."""
MAX_KNOWN = 20_000


def read_instance(name: str, given: Mapping[str, str]) -> Instance:
    """Return the instance with these properties, the same object while they stay equal; raises ConfigError."""
    known = _known.get(name)
    if known is None or known.source is not given:
        if known is None or known.given != given:
            known = Instance(name, given)
        known.source = given
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[name] = known
    return known


class InstanceAddress(NamedTuple):
    """An address that leads to an instance; ``host`` is "" for every address of the broker."""

    protocol: str
    host: str
    port: int


def make_listener_name(instance_name: str, index: int) -> str:
    """Return the name of the listener for an entry of the property ``listeners``, by its place from 0."""
    return f"{LISTENER_PREFIX}{instance_name}-{index}"


class TopicBounds(NamedTuple):
    """The bounds of topic configs in an instance; NO_LIMIT where there is none."""

    max_message_bytes: int = NO_LIMIT
    min_retention_ms: int = NO_LIMIT
    max_retention_ms: int = NO_LIMIT

    def limit_retention(self, retention_ms: int) -> int:
        """Return the nearest retention within the bounds; a negative one means for ever."""
        if self.max_retention_ms != NO_LIMIT and not 0 <= retention_ms <= self.max_retention_ms:
            return self.max_retention_ms
        if 0 <= retention_ms < self.min_retention_ms:
            return self.min_retention_ms
        return retention_ms


NO_BOUNDS = TopicBounds()


def check_instance_name(name: str) -> None:
    """Raise ConfigError for a name that no instance may have. It has no dot, as the prefix ends in one."""
    if not re.fullmatch(_NAME, name) or len(name) > MAX_NAME_LENGTH:
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
        self.source = given
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
        return self._values[option] if option in self._values else _DEFAULTS[option]

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

    @cached_property
    def is_active(self) -> bool:
        """Whether the instance serves clients."""
        return self.string("state") == ACTIVE

    @cached_property
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
        return {entity: self._parse_table(option) for entity, option in TABLES.items() if self.list(option)}

    @cached_property
    def _adopted(self) -> Mapping[str, frozenset[str]]:
        return {entity: frozenset(table.values()) for entity, table in self.tables.items()}

    def list_adopted(self, entity: str) -> frozenset[str]:
        """Return the physical names of the adopted things of a kind."""
        return self._adopted.get(entity, _NOTHING)

    def owns(self, entity: str, physical: str) -> bool:
        """Return whether a thing belongs to the instance: its physical name has the prefix, or it is adopted."""
        return physical.startswith(self.prefix) or physical in self.list_adopted(entity)

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
    def topic_bounds(self) -> TopicBounds:
        """The bounds of its topics' configs."""
        names = ("limit.message.bytes", "limit.retention.min.ms", "limit.retention.max.ms")
        return TopicBounds(*map(self.int, names))

    @cached_property
    def addresses(self) -> tuple[InstanceAddress, ...]:
        """The addresses that lead to the instance; raises ConfigError."""
        return tuple(map(_parse_address, self.list("listeners")))

    @cached_property
    def ports(self) -> frozenset[builtins.int]:
        """The ports of its addresses; raises ConfigError."""
        return frozenset(address.port for address in self.addresses)

    @cached_property
    def claims(self) -> frozenset[object]:
        """The values that no other instance may have, and the ports, which others may have on another host; raises ConfigError."""
        return frozenset({self.cluster_id, *self.ports, *self.sni_hosts, *self.routed_users - {EVERY_USER}})

    @cached_property
    def listeners(self) -> Mapping[str, InstanceAddress]:
        """The addresses by the names of the listeners that have them; raises ConfigError."""
        return {make_listener_name(self.name, index): address for index, address in enumerate(self.addresses)}

    @cached_property
    def whitelist(self) -> Networks | None:
        """The networks that may connect; None for all. Raises ConfigError."""
        return parse_networks("whitelist", self.list("whitelist"))

    @cached_property
    def sni_hosts(self) -> frozenset[str]:
        """The names in TLS handshakes that lead to the instance, in lower case."""
        return frozenset(host.lower() for host in self.list("sni.hosts"))

    @cached_property
    def sni_advertised(self) -> tuple[str, builtins.int] | None:
        """Host and port of the brokers for clients that came by SNI; None if none is set. Raises ConfigError."""
        text = self.string("sni.advertised")
        if not text:
            return None
        match = re.fullmatch(_BROKER_ADDRESS, text)
        if match is None or not 0 < builtins.int(match[2]) <= MAX_PORT:
            raise ConfigError(
                f"sni.advertised={text} is not valid: it takes host:port, such as b{BROKER_ID}.example:9093"
            )
        return match[1], builtins.int(match[2])

    @cached_property
    def advertised_hosts(self) -> Mapping[builtins.int, str]:
        """The host of each broker for the instance's clients, by the broker's id. Raises ConfigError."""
        hosts: dict[builtins.int, str] = {}
        for entry in self.list("advertised.hosts"):
            node_id, _, host = entry.partition(":")
            if not (node_id.isascii() and node_id.isdigit() and host) or builtins.int(node_id) in hosts:
                raise ConfigError(f"advertised.hosts is not valid at {entry!r}: it takes id:host, each id once")
            hosts[builtins.int(node_id)] = host.strip("[]")
        return hosts

    def parse_routes(self) -> None:
        """Parse what leads connections to the instance and admits them; raises ConfigError."""
        _ = self.addresses, self.whitelist, self.advertised_hosts, self.sni_advertised

    @cached_property
    def routed_users(self) -> frozenset[str]:
        """The users whose connections to the brokers' own listeners lead to the instance; `EVERY_USER` stands for all."""
        return frozenset(self.list("sasl.users"))


def _parse_address(text: str) -> InstanceAddress:
    match = re.fullmatch(_ADDRESS, text)
    if match is None or not 0 < int(match[3]) <= MAX_PORT:
        takes = f"PROTOCOL://host:port with a port of 1 to {MAX_PORT}"
        raise ConfigError(f"listeners is not valid at {text!r}: it takes {takes}")
    return InstanceAddress(match[1], match[2], int(match[3]))
