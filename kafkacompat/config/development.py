"""The properties of a broker that starts without a properties file: a complete broker for development."""

from __future__ import annotations

from collections.abc import Mapping

DEVELOPMENT_DEFAULTS: Mapping[str, str] = {
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dir": "./kafkacompat-data",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

SINGLE_NODE_DEFAULTS = frozenset(
    name for name in DEVELOPMENT_DEFAULTS if name == "node.id" or name.endswith((".replication.factor", ".min.isr"))
)
"""Those of the defaults that suit a node without others only."""
