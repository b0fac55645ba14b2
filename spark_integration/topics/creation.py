"""Topics created where records are written to, like those that the records come from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster, OffsetSpec, TopicDescription

APPEARS_S = 30.0
POLL_S = 0.1
# Configs that depend on a cluster's brokers and not on the topic.
NOT_COPIED = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "min.insync.replicas",
    "remote.storage.enable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "local.retention.ms",
    "local.retention.bytes",
)


@dataclass
class CreatedTopics:
    """The number of created topics and added partitions."""

    topics: int = 0
    partitions: int = 0


def ensure_topics(
    cluster: Cluster,
    wanted: Mapping[str, int],
    made: CreatedTopics,
    configs: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> dict[str, TopicDescription]:
    """Create or extend topics until *cluster* has those of *wanted* with at least as many partitions; return them.

    *configs* returns those of a new topic. A topic with more partitions keeps them. The counts of *made* are increased.
    """
    existing = cluster.topics(wanted)
    for name, partitions in wanted.items():
        if name not in existing:
            made.topics += cluster.create_topic(name, partitions, configs(name))
        elif existing[name].partitions < partitions:
            cluster.create_partitions(name, partitions)
            made.partitions += partitions - existing[name].partitions
    topics = _wait_until_known(cluster, wanted)
    # Kafka names new leaders a moment before they accept records, and Spark's producers give up then. A leader that
    # answers here accepts records.
    cluster.offsets(cluster.partitions(wanted), OffsetSpec.LATEST)
    return topics


def configs_to_copy(configs: Mapping[str, str]) -> dict[str, str]:
    """Return those of a topic's own configs that its copy in another cluster gets."""
    return {name: value for name, value in configs.items() if name not in NOT_COPIED}


def _wait_until_known(cluster: Cluster, wanted: Mapping[str, int]) -> dict[str, TopicDescription]:
    """Describe the topics once every broker that answers knows them, which takes a moment for new ones."""
    deadline = time.monotonic() + APPEARS_S
    while True:
        topics = cluster.topics(wanted)
        late = [name for name, count in wanted.items() if name not in topics or topics[name].partitions < count]
        if not late:
            return topics
        if time.monotonic() > deadline:
            raise PipelineError(f"{late[0]} was made on {cluster.bootstrap} and does not appear: check its brokers")
        threading.Event().wait(POLL_S)
