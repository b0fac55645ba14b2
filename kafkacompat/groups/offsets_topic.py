"""The topic in which groups and their offsets are kept."""

from __future__ import annotations

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.topic_changes import NewTopic

OFFSETS_TOPIC = "__consumer_offsets"


def new_offsets_topic(config: BrokerConfig) -> NewTopic:
    """The topic as it is made: the offsets.topic.* properties, and the configs that Kafka gives it."""
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
