"""Which existing things of a cluster an instance adopts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.cli.instances.contents import list_groups, list_transactional_ids, list_users, read_contents
from kafkacompat.config.instances import Instance
from kafkacompat.config.properties import ConfigError
from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.wire import entities

if TYPE_CHECKING:
    from kafkacompat.cli.instances.client import InstanceClient

BROKERS_OWN = "__"
"""Begins the names of the brokers' own topics, which no instance adopts."""


class Kind(NamedTuple):
    """A kind of things that can be adopted: its entity, and the words for one and for many."""

    entity: str
    noun: str
    nouns: str


KINDS: Mapping[str, Kind] = {
    "topic.names": Kind(entities.TOPIC, "topic", "topics"),
    "group.names": Kind(entities.GROUP, "group", "groups"),
    "transactional.id.names": Kind(entities.TRANSACTIONAL_ID, "transactional id", "transactional ids"),
    "user.names": Kind(entities.USER, "user", "users"),
}
"""By the property that lists what is adopted."""


def find_adopted(
    client: InstanceClient, wanted: Mapping[str, Sequence[str]], instances: Mapping[str, Instance]
) -> dict[str, list[str]]:
    """Return the physical names to adopt by property; *wanted* has patterns by property, *instances* are all that exist.

    What belongs to an instance already is left out. Raises ConfigError for a pattern that is not valid or matches nothing.
    """
    patterns = {option: [_read_pattern(option, text) for text in texts] for option, texts in wanted.items() if texts}
    adopted: dict[str, list[str]] = {}
    for option, selected in patterns.items():
        free = _select_free(option, _list_names(client, option), instances)
        names = adopted[option] = [name for name in free if any(pattern.matches(name) for _, pattern in selected)]
        _check_usable(option, names)
        for text, pattern in selected:
            if not any(map(pattern.matches, names)):
                raise ConfigError(f"no {KINDS[option].noun} that is free to adopt has a name like {text!r}")
    return adopted


def _read_pattern(option: str, text: str) -> tuple[str, Pattern]:
    try:
        return text, Pattern(text)
    except PatternError as problem:
        raise ConfigError(f"{text!r} is no regular expression for {KINDS[option].nouns}: {problem}") from None


def _list_names(client: InstanceClient, option: str) -> Iterable[str]:
    contents = read_contents(client, with_sizes=False)
    if option == "topic.names":
        return [name for name in sorted(contents.topics) if not name.startswith(BROKERS_OWN)]
    if option == "group.names":
        return list_groups(client, contents)
    return list_users(client) if option == "user.names" else list_transactional_ids(client, contents)


def _select_free(option: str, names: Iterable[str], instances: Mapping[str, Instance]) -> list[str]:
    entity = KINDS[option].entity
    adopted = {physical for instance in instances.values() for physical in instance.list_adopted(entity)}
    prefixes = tuple(instance.prefix for instance in instances.values())
    return [name for name in names if name not in adopted and not name.startswith(prefixes)]


def _check_usable(option: str, names: Iterable[str]) -> None:
    """Raise ConfigError for a name that a list of name:physical cannot hold."""
    for name in names:
        if "," in name or ":" in name or name != name.strip():
            noun = KINDS[option].noun
            raise ConfigError(f"the {noun} {name!r} cannot be adopted: its name has a comma, a colon or outer blanks")
