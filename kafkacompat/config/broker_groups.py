"""Groups of brokers: the parts of a cluster that instances live in, so that the failure of a part stays small.

kafkacompat.broker.groups lists them as ``name:ids``, with ids and ranges of ids joined by ``+``: ``a:1-3,b:4+6+8``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from kafkacompat.config.properties import ConfigError
from kafkacompat.config.suggestions import did_you_mean

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.config.readable import ReadableConfig

GROUPS = "kafkacompat.broker.groups"
MAX_BROKERS = "kafkacompat.broker.group.max.brokers"
MAX_GROUPS_OF_INSTANCE = 2
"""An instance has one group, and a second one while it moves."""
MAX_BROKER_ID = 2**31 - 1

BrokerGroups: TypeAlias = "Mapping[str, frozenset[int]]"
"""The ids of the brokers in each group; a broker is in one group at most."""

NO_GROUPS: BrokerGroups = MappingProxyType({})

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}")
_IDS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")
_FORM = "it takes name:ids, with ids and ranges joined by +, as a:1-3,b:4+6"


def read_broker_groups(config: ReadableConfig) -> BrokerGroups:
    """Return the groups of brokers that *config* has; raises ConfigError."""
    entries = config.value(GROUPS)
    assert isinstance(entries, tuple)
    return _parse_groups(entries, config.int(MAX_BROKERS)) if entries else NO_GROUPS


def parse_broker_groups(text: str, most: int) -> BrokerGroups:
    """Return the groups of a text in which entries are separated by commas, with at most *most* brokers each.

    Raises ConfigError.
    """
    return _parse_groups(tuple(filter(None, text.split(","))), most)


# Requests of instances' clients need the groups, which are the same nearly always.
@lru_cache(maxsize=4)
def _parse_groups(entries: Sequence[str], most: int) -> BrokerGroups:
    groups: dict[str, frozenset[int]] = {}
    group_of: dict[int, str] = {}
    for entry in entries:
        name, colon, text = entry.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise ConfigError(f"{GROUPS} is not valid at {entry!r}: {_FORM}")
        if name in groups:
            raise ConfigError(f"{GROUPS} has the group {name} twice: list its brokers in one entry")
        ids: set[int] = set()
        for first, last in _parse_ranges(entry, text):
            if len(ids) + last - first + 1 > most:
                raise ConfigError(
                    f"{GROUPS} gives the group {name} more than {most} brokers ({MAX_BROKERS}): make smaller groups"
                )
            for node_id in range(first, last + 1):
                if node_id in group_of:
                    other = group_of[node_id]
                    where = "twice" if other == name else f"and the group {other} too"
                    raise ConfigError(f"{GROUPS} gives the group {name} the broker {node_id} {where}: name it once")
                group_of[node_id] = name
                ids.add(node_id)
        groups[name] = frozenset(ids)
    return MappingProxyType(groups)


def _parse_ranges(entry: str, text: str) -> Iterator[tuple[int, int]]:
    for part in text.split("+"):
        match = _IDS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= MAX_BROKER_ID:
            raise ConfigError(f"{GROUPS} is not valid at {entry!r}: {_FORM}")
        yield first, last


def check_instance_groups(instance: Instance, groups: BrokerGroups) -> None:
    """Raise ConfigError if an instance names a group that does not exist, or more than two."""
    names = instance.list("placement.group")
    if len(names) > MAX_GROUPS_OF_INSTANCE:
        raise ConfigError(
            f"placement.group={','.join(names)} names {len(names)} groups: an instance has one, and two while it moves"
        )
    for name in names:
        if name not in groups:
            raise ConfigError(
                f"placement.group={','.join(names)} is not valid: there is no group {name}"
                f"{did_you_mean(name, groups)}; {GROUPS} lists the groups"
            )
