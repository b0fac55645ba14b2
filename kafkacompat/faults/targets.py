"""The topics and partitions in messages, found by the protocol's declarations, which say which fields name topics.

A topic's *key* is the name or the id by which a message names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.wire.entities import TOPIC, TOPIC_ID
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Field, Struct

TopicKey: TypeAlias = "str | bytes"
Covers: TypeAlias = Callable[[TopicKey, "int | None"], bool]
"""Returns whether a partition is meant; a topic as a whole for None."""

_PARTITION_LISTS = frozenset(
    {
        "partitions",
        "partition_indexes",
        "partition_data",
        "partition_responses",
        "partition_result",
        "results_by_partition",
    }
)
_INDEXES = ("partition_index", "index", "partition", "partition_id")
_IDENTITIES = ("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "producer_id")
"""The fields that two elements about the same thing have in common."""


class TopicItem(NamedTuple):
    """A topic in a message. ``partitions`` are its partitions by number, with their structs or the numbers themselves."""

    owner: Any
    key: TopicKey
    partitions: list[tuple[int, Any]]


def list_topics(message: Struct, version: int) -> Iterator[TopicItem]:
    """Yield the topics of a message, at any depth, in order."""
    for name, field in _list_arrays(message, version):
        for element in getattr(message, name) or ():
            if isinstance(element, Struct):
                key = _find_key(element, version)
                if key is None:
                    yield from list_topics(element, version)
                else:
                    yield TopicItem(element, key, _list_partitions(element, version))
            elif _names_topic(field):
                yield TopicItem(element, element, [])


def _list_arrays(message: Struct, version: int) -> Iterator[tuple[str, Field]]:
    for name, field in message.FIELDS.items():
        if field.element is not None and version in field.versions:
            yield name, field.element


def _names_topic(field: Field) -> bool:
    return field.entity in (TOPIC, TOPIC_ID)


def _find_key(element: Struct, version: int) -> TopicKey | None:
    for name, field in element.FIELDS.items():
        if _names_topic(field) and version in field.versions:
            key: TopicKey | None = getattr(element, name)
            if key and key != ZERO_UUID:
                return key
    return None


def _find_partition_list(element: Struct, version: int) -> str | None:
    return next((name for name, _ in _list_arrays(element, version) if name in _PARTITION_LISTS), None)


def _list_partitions(element: Struct, version: int) -> list[tuple[int, Any]]:
    name = _find_partition_list(element, version)
    return [] if name is None else [(find_index(item), item) for item in getattr(element, name) or ()]


def find_index(item: Any) -> int:
    """Return the number of a partition, which is *item* or a field of it."""
    if not isinstance(item, Struct):
        return int(item)
    return int(getattr(item, next(name for name in _INDEXES if name in item.FIELDS)))


def select(message: Struct, version: int, covers: Covers) -> Any:
    """Return a copy of a message that names the covered partitions only; elements without any are left out."""
    selected = copy(message)
    for name, field in _list_arrays(message, version):
        elements = getattr(message, name)
        if not elements or not _holds_topics(field, version):
            continue
        setattr(
            selected, name, [kept for element in elements if (kept := _select(element, version, covers)) is not None]
        )
    return selected


def _holds_topics(field: Field, version: int) -> bool:
    """Return whether an array's elements name topics, or hold elements that do."""
    if field.struct is None:
        return _names_topic(field)
    fields = [field for field in field.struct.FIELDS.values() if version in field.versions]
    return any(
        _names_topic(field) or (field.element is not None and _holds_topics(field.element, version)) for field in fields
    )


def _select(element: Any, version: int, covers: Covers) -> Any | None:
    if not isinstance(element, Struct):
        return element if covers(element, None) else None
    key = _find_key(element, version)
    if key is None:
        selected = select(element, version, covers)
        return selected if next(list_topics(selected, version), None) is not None else None
    name = _find_partition_list(element, version)
    if name is None or not getattr(element, name):
        return element if covers(key, None) else None
    items = [item for item in getattr(element, name) if covers(key, find_index(item))]
    if not items:
        return None
    selected = copy(element)
    setattr(selected, name, items)
    return selected


def merge(message: Struct, other: Struct) -> None:
    """Add the elements of another message of the same kind to those of a message; elements about the same thing become one."""
    for name, field in message.FIELDS.items():
        if field.element is None or field.element.struct is None:
            continue
        elements = getattr(message, name) or []
        for element in getattr(other, name) or ():
            identity = _identify(element)
            same = next((known for known in elements if identity and _identify(known) == identity), None)
            if same is None:
                elements.append(element)
            else:
                merge(same, element)
        setattr(message, name, elements)


def _identify(element: Struct) -> tuple[Any, ...]:
    return tuple(getattr(element, name) for name in _IDENTITIES if name in element.FIELDS)
