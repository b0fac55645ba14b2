"""The internal topic of groups and their offsets."""

from __future__ import annotations

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.topic_changes import NewTopic

OFFSETS_TOPIC = "__consumer_offsets"


def new_offsets_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic to create: the offsets.topic.* properties, and the configs that Kafka sets."""
    return NewTopic(
        OFFSETS_TOPIC,
        config.int("offsets.topic.num.partitions"),
        config.int("offsets.topic.replication.factor"),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
        },
        fewer_replicas_allowed="offsets.topic.replication.factor" not in config.given,
    )
