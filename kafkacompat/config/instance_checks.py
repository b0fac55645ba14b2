"""Checks of an instance: its names, the changes it may have while it exists, and its claims beside other instances."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafkacompat.config.instances import (
    ARROW,
    BROKER_ID,
    DEFAULT_TOPIC_CONFIGS,
    EVERY_USER,
    LONG_NAME_CONFIG,
    TABLES,
    Instance,
    InstanceAddress,
    check_instance_name,
    read_instance,
)
from kafkacompat.config.listeners import WILDCARD_HOSTS
from kafkacompat.config.properties import ConfigError
from kafkacompat.wire import entities

MAX_PREFIX_LENGTH = 128
FIXED = ("cluster.id", "secret", "name.prefix")
"""Properties that never change: clients know the ids, and what the instance has is found by the prefix."""

_NEVER_DEFAULTS = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "unclean.leader.election.enable",
        LONG_NAME_CONFIG,
    }
)
"""Topic configs that an instance has no default of: they name single partitions, or may lose records."""
_SNI_HOST = r"(\*\.)?[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?(\.[0-9a-z_]([0-9a-z_-]*[0-9a-z_])?)*"
_PREFIX = r"[a-zA-Z0-9._-]*[._-]"
"""Without a separator at its end, a prefix such as ``s`` would take the operator's later topic ``sales``."""
_TOPIC = r"[a-zA-Z0-9._-]{1,249}"
_INTERNAL = "__"


def check_instance_change(
    name: str, before: Mapping[str, str], after: Mapping[str, str], topics: Collection[str]
) -> None:
    """Check a change of an instance's properties from *before*, {} for a new instance, beside the cluster's *topics*.

    Raises ConfigError, one sentence.
    """
    check_instance_name(name)
    if not after:
        _check_empty(name, before, topics)
        return
    _check_fixed(name, before, after)
    instance = read_instance(name, after)
    _check_names(instance)
    _check_state(instance)
    _check_limits(instance)
    if before:
        _check_whitelist(before, after)
    else:
        _check_new_prefix(instance, topics)


def _check_names(instance: Instance) -> None:
    """Raise ConfigError for a prefix, a table or a regular expression that cannot make physical names."""
    _check_prefix(instance)
    for table_entity, table in instance.tables.items():
        _check_table(table_entity, table)
    _check_renaming(instance)


def _check_prefix(instance: Instance) -> None:
    prefix = instance.prefix
    if not re.fullmatch(_PREFIX, prefix) or len(prefix) > MAX_PREFIX_LENGTH:
        takes = f"1 to {MAX_PREFIX_LENGTH} ASCII letters, digits, '.', '_' and '-', and ends in one of these signs"
        raise ConfigError(f"name.prefix={prefix} is not valid: it takes {takes}")
    if prefix.startswith(_INTERNAL) or _INTERNAL.startswith(prefix):
        raise ConfigError(f"name.prefix={prefix} is not valid: names that begin with '__' are the brokers' own")


def _check_table(table_entity: str, table: Mapping[str, str]) -> None:
    taken: set[str] = set()
    for name, physical in table.items():
        if physical in taken:
            raise ConfigError(f"the {_NOUNS[table_entity]} '{physical}' has two names in the instance: give it one")
        taken.add(physical)
        if table_entity != entities.TOPIC:
            continue
        if not re.fullmatch(_TOPIC, name) or not re.fullmatch(_TOPIC, physical):
            raise ConfigError(f"topic.names is not valid at '{name}:{physical}': no topic may have this name")
        if physical.startswith(_INTERNAL):
            raise ConfigError(f"topic.names is not valid at '{name}:{physical}': the topic is the brokers' own")


_NOUNS = {
    entities.TOPIC: "topic",
    entities.GROUP: "group",
    entities.TRANSACTIONAL_ID: "transactional id",
    entities.USER: "user",
}


def _check_renaming(instance: Instance) -> None:
    forth, back = instance.string("topic.name.regex"), instance.string("topic.name.regex.back")
    if bool(forth) != bool(back):
        raise ConfigError("topic.name.regex and topic.name.regex.back need each other: set both, or none")
    if forth:
        _check_rewriting("topic.name.regex", forth)
        _check_rewriting("topic.name.regex.back", back)


def _check_rewriting(option: str, text: str) -> None:
    """Raise ConfigError unless *text* is a pattern in RE2's syntax and a replacement that names its groups."""
    import re2  # Most instances have none.

    pattern, arrow, replacement = text.partition(ARROW)
    if not arrow or not pattern:
        raise ConfigError(f"{option}={text} is not valid: it takes pattern{ARROW}replacement")
    options: Any = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options).sub(replacement, "orders")
    except (re2.error, IndexError, ValueError) as problem:
        reason = problem.args[0] if problem.args else "it cannot be read"
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ConfigError(f"{option}={text} is not valid: {words}") from None


def _check_state(instance: Instance) -> None:
    """Raise ConfigError for a time of deletion without a deletion."""
    if instance.is_active and instance.int("delete.at.ms") >= 0:
        raise ConfigError("delete.at.ms has no meaning for an active instance: remove it, or set state=deleting")


def _check_limits(instance: Instance) -> None:
    """Raise ConfigError for bounds that no topic can meet. A limit of 0 is allowed: the instance may have nothing."""
    least, most = instance.int("limit.retention.min.ms"), instance.int("limit.retention.max.ms")
    if least > most >= 0:
        raise ConfigError(
            f"limit.retention.min.ms={least} is not valid: it takes at most limit.retention.max.ms={most}"
        )
    for option in ("num.partitions", "default.replication.factor"):
        if instance.int(option) == 0:
            raise ConfigError(f"{option}=0 is not valid: it takes 1 or more, or -1 for the brokers' default")


def _check_empty(name: str, before: Mapping[str, str], topics: Collection[str]) -> None:
    """Raise ConfigError if an instance that loses all properties has topics, which would belong to nobody."""
    instance = Instance(name, before)
    adopted = instance.list_adopted(entities.TOPIC)
    left = _find_first(instance.prefix, topics) or next((topic for topic in adopted if topic in topics), None)
    if left is not None:
        raise ConfigError(f"the instance {name} has the topic {left}: remove both by `kafkacompat instances delete`")


def _check_fixed(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise ConfigError for a change that a living instance cannot have; *before* and *after* are its properties."""
    if not before:
        return
    for option in FIXED:
        if before.get(option) == after.get(option):
            continue
        if option == "cluster.id" and option in after:
            raise ConfigError(f"the instance {name} exists already: change it by `kafkacompat instances alter`")
        raise ConfigError(f"{option} of the instance {name} cannot change: its clients' names depend on it")


def _check_new_prefix(instance: Instance, topics: Collection[str]) -> None:
    """Raise ConfigError if a new instance would own existing topics by its prefix alone."""
    taken = _find_first(instance.prefix, topics)
    if taken is not None:
        raise ConfigError(
            f"name.prefix={instance.prefix} is the beginning of the existing topic {taken}: choose another name.prefix"
        )


def _find_first(prefix: str, names: Iterable[str]) -> str | None:
    """Return a name that begins with *prefix*, or None."""
    return next((name for name in names if name.startswith(prefix)), None)


def _check_whitelist(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise ConfigError if the last network of a whitelist goes, which would let all connect by mistake."""
    if before.get("whitelist") and after.get("whitelist") == "":
        raise ConfigError("an empty whitelist lets all connect: set whitelist=none, or delete the property")


# An instance beside the others


def _check_traffic(instance: Instance) -> None:
    """Raise ConfigError for a limit that would let nothing pass."""
    for option in ("quota.produce.bytes.per.second", "quota.fetch.bytes.per.second"):
        if not instance.int(option):
            raise ConfigError(f"{option}=0 would let nothing pass: give at least 1, or -1 for no limit")


def check_instance(
    name: str,
    given: Mapping[str, str],
    others: Mapping[str, Mapping[str, str]],
    taken: Collection[tuple[str, int]] = (),
) -> None:
    """Check the properties of an instance beside those of all *others*.

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
    for user in instance.routed_users - {EVERY_USER}:
        if not instance.owns(entities.USER, user):
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
            if other.owns(entity, physical):
                raise ConfigError(f"{TABLES[entity]}: {physical} belongs to the instance {other.name} already")
    for table in other.tables.values():
        for physical in table.values():
            if physical.startswith(mine):
                raise ConfigError(
                    f"name.prefix={mine} could name {physical}, which belongs to the instance {other.name}"
                )


def _meet(host: str, other: str) -> bool:
    return host == other or host in WILDCARD_HOSTS or other in WILDCARD_HOSTS
