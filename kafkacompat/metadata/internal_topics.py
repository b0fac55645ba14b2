"""The brokers' own topics: how they are made when they are first needed."""

from __future__ import annotations

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.metadata.topic_names import is_internal

OFFSETS_TOPIC = "__consumer_offsets"


def offsets_topic(config: BrokerConfig) -> NewTopic:
    """The topic of committed offsets, as Kafka makes it."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
    }
    partitions, factor = (config.int(f"offsets.topic.{name}") for name in ("num.partitions", "replication.factor"))
    return NewTopic(OFFSETS_TOPIC, partitions, factor, configs=configs)


def auto_created(name: str, config: BrokerConfig) -> NewTopic | None:
    """The topic that a client's asking for *name* makes; None for a broker's topic that nobody serves yet."""
    if name == OFFSETS_TOPIC:
        return offsets_topic(config)
    return None if is_internal(name) else NewTopic(name)
