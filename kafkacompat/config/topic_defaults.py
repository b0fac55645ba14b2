"""The broker's value of each topic config, which applies to topics that do not set their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.config.values import Value

if TYPE_CHECKING:
    from kafkacompat.config.readable import ReadableConfig

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class BrokerSynonym(NamedTuple):
    """A broker property that sets a topic config; ``factor`` turns its unit into the topic config's."""

    name: str
    factor: int = 1


def _parse_renamed(text: str) -> dict[str, tuple[BrokerSynonym, ...]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {topic_config: (BrokerSynonym(name),) for topic_config, name in rows}


# The first of several that has a value counts.
TOPIC_CONFIG_SYNONYMS: Mapping[str, tuple[BrokerSynonym, ...]] = {
    "segment.ms": (BrokerSynonym("log.roll.ms"), BrokerSynonym("log.roll.hours", HOUR_MS)),
    "segment.jitter.ms": (BrokerSynonym("log.roll.jitter.ms"), BrokerSynonym("log.roll.jitter.hours", HOUR_MS)),
    "flush.ms": (BrokerSynonym("log.flush.interval.ms"), BrokerSynonym("log.flush.scheduler.interval.ms")),
    "retention.ms": (
        BrokerSynonym("log.retention.ms"),
        BrokerSynonym("log.retention.minutes", MINUTE_MS),
        BrokerSynonym("log.retention.hours", HOUR_MS),
    ),
    **_parse_renamed(
        """
        cleanup.policy log.cleanup.policy
        compression.gzip.level compression.gzip.level
        compression.lz4.level compression.lz4.level
        compression.type compression.type
        compression.zstd.level compression.zstd.level
        delete.retention.ms log.cleaner.delete.retention.ms
        file.delete.delay.ms log.segment.delete.delay.ms
        flush.messages log.flush.interval.messages
        index.interval.bytes log.index.interval.bytes
        local.retention.bytes log.local.retention.bytes
        local.retention.ms log.local.retention.ms
        max.compaction.lag.ms log.cleaner.max.compaction.lag.ms
        max.message.bytes message.max.bytes
        message.timestamp.after.max.ms log.message.timestamp.after.max.ms
        message.timestamp.before.max.ms log.message.timestamp.before.max.ms
        message.timestamp.type log.message.timestamp.type
        min.cleanable.dirty.ratio log.cleaner.min.cleanable.ratio
        min.compaction.lag.ms log.cleaner.min.compaction.lag.ms
        min.insync.replicas min.insync.replicas
        preallocate log.preallocate
        retention.bytes log.retention.bytes
        segment.bytes log.segment.bytes
        segment.index.bytes log.index.size.max.bytes
        unclean.leader.election.enable unclean.leader.election.enable
        """
    ),
}


def find_broker_topic_value(config: ReadableConfig, topic_config: str) -> Value:
    """Return the broker's value of a topic config that has a synonym, in the topic config's unit.

    Any negative retention.ms becomes -1, which means for ever.
    """
    for synonym in TOPIC_CONFIG_SYNONYMS[topic_config]:
        value = config.value(synonym.name)
        if value is not None:
            break
    if isinstance(value, int) and synonym.factor > 1:
        value *= synonym.factor
    if topic_config == "retention.ms" and isinstance(value, int):
        return max(value, -1)
    return value
