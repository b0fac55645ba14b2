"""The limits of an instance where its topics are created, grow or get other configs, and where topics set no value of their own.

A limit that is lowered refuses only what is new: existing topics and values stay. The messages name no topic, as the client of an
instance knows its topics by other names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from kafkacompat.config.instances import NO_BOUNDS, NO_LIMIT, Instance, TopicBounds
from kafkacompat.config.topics import find_topic_value
from kafkacompat.metadata.draft import MetadataDraft, OwnedTopics
from kafkacompat.wire import entities
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig

FindInstance: TypeAlias = "Callable[[str], Instance | None]"
"""Returns the instance that a topic's physical name belongs to; None for a topic of the whole cluster."""

MAX_MESSAGE_BYTES = "max.message.bytes"
RETENTION_MS = "retention.ms"


def find_no_instance(topic: str) -> Instance | None:
    """Return None, as for a cluster without instances."""
    return None


def check_new_topic(draft: MetadataDraft, instance: Instance, partitions: int) -> None:
    """Raise KafkaError POLICY_VIOLATION if the instance may not have another topic with this many partitions."""
    limit = instance.int("limit.topics")
    if limit != NO_LIMIT:
        count = _count_topics(draft, instance).topic_count
        if count >= limit:
            reason = f"limit.topics is {limit} and there are {count} topics"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{reason}: delete a topic, or ask for a higher limit")
    check_new_partitions(draft, instance, partitions)


def check_new_partitions(draft: MetadataDraft, instance: Instance, partitions: int) -> None:
    """Raise KafkaError POLICY_VIOLATION if the instance may not have this many more partitions."""
    limit = instance.int("limit.partitions")
    if limit == NO_LIMIT:
        return
    count = _count_topics(draft, instance).partition_count
    if count + partitions > limit:
        reason = f"limit.partitions is {limit} and there are {count}"
        advice = "delete topics, or ask for a higher limit"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{reason}: {partitions} more would be too many; {advice}")


def _count_topics(draft: MetadataDraft, instance: Instance) -> OwnedTopics:
    return draft.count_topics(instance.name, lambda topic: instance.owns(entities.TOPIC, topic))


def check_topic_configs_of(instance: Instance, configs: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Raise KafkaError POLICY_VIOLATION for a value beyond the instance's bounds that *before* does not have already.

    The values are valid ones.
    """
    bounds = instance.topic_bounds
    for name, check in ((MAX_MESSAGE_BYTES, _check_message_bytes), (RETENTION_MS, _check_retention)):
        text = configs.get(name)
        if text is not None and text != before.get(name):
            check(int(text), bounds)


def _check_message_bytes(value: int, bounds: TopicBounds) -> None:
    limit = bounds.max_message_bytes
    if limit != NO_LIMIT and value > limit:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{MAX_MESSAGE_BYTES}={value} is not allowed: it may be {limit} at most"
        )


def _check_retention(value: int, bounds: TopicBounds) -> None:
    least, most = bounds.min_retention_ms, bounds.max_retention_ms
    if most != NO_LIMIT and (value < 0 or value > most):
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{RETENTION_MS}={value} is not allowed: it may be {most} at most")
    if least != NO_LIMIT and 0 <= value < least:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{RETENTION_MS}={value} is not allowed: it must be {least} at least"
        )


def limit_defaults(config: BrokerConfig, defaults: Mapping[str, str], bounds: TopicBounds) -> Mapping[str, str]:
    """Return the *defaults* of an instance's topics with values for those configs whose default is beyond the bounds.

    *config* has the brokers' own defaults. An existing topic may have values of its own beyond bounds that were lowered later.
    """
    if bounds == NO_BOUNDS:
        return defaults
    max_message_bytes = _find_number(config, defaults, MAX_MESSAGE_BYTES)
    retention_ms = _find_number(config, defaults, RETENTION_MS)
    limited = dict(defaults)
    if bounds.max_message_bytes != NO_LIMIT and max_message_bytes > bounds.max_message_bytes:
        limited[MAX_MESSAGE_BYTES] = str(bounds.max_message_bytes)
    if retention_ms != bounds.limit_retention(retention_ms):
        limited[RETENTION_MS] = str(bounds.limit_retention(retention_ms))
    return limited


def _find_number(config: BrokerConfig, defaults: Mapping[str, str], name: str) -> int:
    value = find_topic_value(config, defaults, name)
    assert isinstance(value, int)
    return value
