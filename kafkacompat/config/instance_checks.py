"""Checks of an instance's names, and of what may change while it exists."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kafkacompat.config.instances import Instance, check_instance_name, read_instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.wire import entities

MAX_PREFIX_LENGTH = 128
FIXED = ("cluster.id", "secret", "name.prefix")
"""Properties that never change: clients know the ids, and what the instance has is found by the prefix."""
ARROW = "=>"

_PREFIX = r"[a-zA-Z0-9._-]+"
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
        takes = f"1 to {MAX_PREFIX_LENGTH} ASCII letters, digits, '.', '_' and '-'"
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
    """Raise ConfigError for bounds of which none can be met. A limit of 0 is allowed: the instance may have nothing."""
    least, most = instance.int("limit.retention.min.ms"), instance.int("limit.retention.max.ms")
    if least > most >= 0:
        raise ConfigError(f"limit.retention.min.ms={least} is more than limit.retention.max.ms={most}")
    for option in ("num.partitions", "default.replication.factor"):
        if instance.int(option) == 0:
            raise ConfigError(f"{option}=0 is not valid: it takes 1 or more, or -1 for the brokers' default")


def _check_empty(name: str, before: Mapping[str, str], topics: Collection[str]) -> None:
    """Raise ConfigError if an instance that loses all properties has topics, which would belong to nobody."""
    instance = Instance(name, before)
    adopted = instance.tables.get(entities.TOPIC, {}).values()
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
