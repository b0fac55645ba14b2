"""Topics made where records go: like those that they come from."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster, OffsetSpec, TopicDescription

APPEARS_S = 30.0
POLL_S = 0.1
# Configs that say something of a cluster's brokers, not of the topic.
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
    """What was made."""

    topics: int = 0
    partitions: int = 0


def ensure_topics(
    cluster: Cluster,
    wanted: Mapping[str, int],
    made: CreatedTopics,
    configs: Callable[[str], Mapping[str, str]] = lambda _: {},
) -> dict[str, TopicDescription]:
    """Let *cluster* have the topics of *wanted* with at least as many partitions; return them as they are then.

    *configs* are a new topic's. One that has more partitions keeps them. *made* is added to.
    """
    there = cluster.topics(wanted)
    for name, partitions in wanted.items():
        if name not in there:
            made.topics += cluster.create_topic(name, partitions, configs(name))
        elif there[name].partitions < partitions:
            cluster.create_partitions(name, partitions)
            made.partitions += partitions - there[name].partitions
    topics = _wait_until_known(cluster, wanted)
    # A leader that answers takes writes, too: Kafka names new ones a moment before, and Spark's producers give up then.
    cluster.offsets(cluster.partitions(wanted), OffsetSpec.LATEST)
    return topics


def configs_to_copy(configs: Mapping[str, str]) -> dict[str, str]:
    """Return what of a topic's own configs another cluster is to be given."""
    return {name: value for name, value in configs.items() if name not in NOT_COPIED}


def _wait_until_known(cluster: Cluster, wanted: Mapping[str, int]) -> dict[str, TopicDescription]:
    """Describe the topics once every broker that is asked knows them: a new one takes a moment."""
    deadline = time.monotonic() + APPEARS_S
    while True:
        topics = cluster.topics(wanted)
        late = [name for name, count in wanted.items() if name not in topics or topics[name].partitions < count]
        if not late:
            return topics
        if time.monotonic() > deadline:
            raise PipelineError(f"{late[0]} was made on {cluster.bootstrap} and does not appear: look at its brokers")
        threading.Event().wait(POLL_S)
