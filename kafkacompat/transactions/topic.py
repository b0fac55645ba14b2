"""The internal topic of transactions."""

from __future__ import annotations

from kafkacompat.config import BrokerConfig
from kafkacompat.metadata.topic_changes import NewTopic

TRANSACTION_TOPIC = "__transaction_state"


def new_transaction_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic to create: the transaction.state.log.* properties, and the configs that Kafka sets."""
    return NewTopic(
        TRANSACTION_TOPIC,
        config.int("transaction.state.log.num.partitions"),
        config.int("transaction.state.log.replication.factor"),
        configs={
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config.int("transaction.state.log.min.isr")),
            "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
        },
        fewer_replicas_allowed="transaction.state.log.replication.factor" not in config.given,
        capped_configs=() if "transaction.state.log.min.isr" in config.given else ("min.insync.replicas",),
    )
