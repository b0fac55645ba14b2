"""One instance: what its operator has configured, as values."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from kafkacompat.config.networks import Networks, parse_networks
from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.config.tables.instances import INSTANCES
from kafkacompat.config.values import Value
from kafkacompat.wire import entities

INSTANCE_PROPERTIES: Mapping[str, Property] = parse_tables(INSTANCES)
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
_ADDRESS = r"(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})"
_SNI_HOST = r"(\*\.)?[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?(\.[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?)*"
_BROKER_ADDRESS = r"\[?([0-9a-zA-Z\-%._:{}]+)\]?:([0-9]{1,5})"
MAX_PORT = 65535
LISTENER_PREFIX = "INSTANCE-"
"""Begins the names of instances' listeners; no other listener has such a name."""
EVERY_USER = "*"
"""In sasl.users: every user of the instance."""
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


def _check_traffic(instance: Instance) -> None:
    """Raise ConfigError for a limit that would let nothing pass."""
    for option in ("quota.produce.bytes.per.second", "quota.fetch.bytes.per.second"):
        if not instance.int(option):
            raise ConfigError(f"{option}=0 would let nothing pass: give at least 1, or -1 for no limit")


def check_instance(
    name: str,
    given: Mapping[str, str],
    others: Mapping[str, Mapping[str, str]],
    topics: Collection[str],
    taken: Collection[tuple[str, int]] = (),
) -> None:
    """Check the properties of an instance beside those of all *others*, and beside the cluster's *topics*.

    *taken* are the hosts and ports of this broker's own listeners, and its other names with port 0.

    Raises ConfigError, one sentence. No properties at all remove the instance.
    """
    check_instance_name(name)
    if not given:
        return
    instance = read_instance(name, given)
    _ = instance.tables, instance.super_users
    _check_default_topic_configs(instance)
    _check_traffic(instance)
    _check_routes(instance, taken)
    _, least_ms, most_ms = instance.topic_bounds
    if most_ms != NO_LIMIT and least_ms > most_ms:
        raise ConfigError(
            f"limit.retention.min.ms={least_ms} is not valid: it takes at most limit.retention.max.ms={most_ms}"
        )
    if not instance.cluster_id or not instance.secret:
        raise ConfigError(
            f"the instance {name} needs cluster.id and secret: create it by `kafkacompat instances create`"
        )
    for other_name, other_given in others.items():
        _check_apart(instance, read_instance(other_name, other_given))


def _check_routes(instance: Instance, taken: Collection[tuple[str, int]]) -> None:
    """Raise ConfigError for addresses, names and networks that lead nowhere."""
    instance.parse_routes()
    _check_addresses(instance.addresses, taken)
    for host in instance.sni_hosts:
        if not re.fullmatch(_SNI_HOST, host):
            raise ConfigError(
                f"sni.hosts is not valid at {host!r}: it takes names such as b1.shop.example and *.shop.example"
            )
    _check_advertised_name(instance)
    for host in sorted({host.lower() for host, _ in taken}):
        if {host, _make_wildcard(host)} & instance.sni_hosts:
            raise ConfigError(
                f"sni.hosts covers {host}, which is a name of the broker itself: take a domain of its own"
            )
    adopted = set(instance.tables.get(entities.USER, {}).values())
    for user in instance.routed_users - adopted - {EVERY_USER}:
        if not user.startswith(instance.prefix):
            takes = f"users that begin with {instance.prefix}, users in user.names, or {EVERY_USER} for all of these"
            raise ConfigError(f"sasl.users is not valid at {user!r}: it takes {takes}")


def _check_addresses(addresses: tuple[InstanceAddress, ...], taken: Collection[tuple[str, int]]) -> None:
    for index, address in enumerate(addresses):
        entry = f"{address.protocol}://{address.host}:{address.port}"
        if any(address.port == other.port and _meet(address.host, other.host) for other in addresses[:index]):
            raise ConfigError(f"listeners is not valid at {entry!r}: it names the port twice")
        if any(address.port == port and _meet(address.host, host) for host, port in taken):
            raise ConfigError(f"listeners is not valid at {entry!r}: a listener of the broker has that port")


def _check_advertised_name(instance: Instance) -> None:
    """Check that clients that came by SNI come back to the instance when they connect to the address they receive."""
    advertised = instance.sni_advertised
    if advertised is None:
        if instance.sni_hosts:
            raise ConfigError(
                f"sni.hosts needs sni.advertised: set it as host:port, with {BROKER_ID} for the broker's id"
            )
        return
    host = advertised[0].replace(BROKER_ID, "0").lower()
    wildcard = _make_wildcard(host)
    # Names without {id} stand for a proxy, or for the only broker.
    if BROKER_ID in advertised[0] and wildcard not in instance.sni_hosts:
        raise ConfigError(f"sni.advertised={advertised[0]} is not a name of sni.hosts: add {wildcard} there")
    if BROKER_ID not in advertised[0] and not {host, wildcard} & instance.sni_hosts:
        raise ConfigError(f"sni.advertised={advertised[0]} is not a name of sni.hosts: add it there")


def _check_default_topic_configs(instance: Instance) -> None:
    for option in instance.default_topic_configs.keys() & _NEVER_DEFAULTS:
        raise ConfigError(f"{DEFAULT_TOPIC_CONFIGS} is not valid at {option}: it is set for each topic by itself")


def _make_wildcard(host: str) -> str:
    """Return the name in sni.hosts that covers a host and its siblings."""
    return "*." + host.partition(".")[2]


def _check_apart(instance: Instance, other: Instance) -> None:
    """Raise ConfigError if two instances share an address or could share a physical name."""
    mine, theirs = instance.prefix, other.prefix
    if mine.startswith(theirs) or theirs.startswith(mine):
        raise ConfigError(
            f"name.prefix={mine} could name what belongs to the instance {other.name}, whose prefix is {theirs}"
        )
    if instance.claims.isdisjoint(other.claims) and not instance.tables and not other.tables:
        return
    if instance.cluster_id == other.cluster_id:
        raise ConfigError(f"cluster.id={other.cluster_id} is that of the instance {other.name}")
    for address in () if instance.ports.isdisjoint(other.ports) else instance.addresses:
        if any(address.port == taken.port and _meet(address.host, taken.host) for taken in other.addresses):
            entry = f"{address.host}:{address.port}"
            raise ConfigError(f"the address {entry} leads to the instance {other.name} already: take another port")
    for host in other.sni_hosts and instance.sni_hosts & other.sni_hosts:
        raise ConfigError(f"sni.hosts={host} leads to the instance {other.name} already: take another name")
    for user in other.routed_users and instance.routed_users & other.routed_users - {EVERY_USER}:
        raise ConfigError(f"sasl.users={user} leads to the instance {other.name} already")
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
