"""What is drawn once for a whole run: the size of the cluster, its promises, and how fast everything is."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

KAFKA, FSYNC = "kafka", "fsync"
TOPICS = {"orders": 2, "payments": 1}
"""The topics of all runs, with the numbers of their partitions."""
GROUP_SHARE = 0.6
"""Share of the runs with a group of consumers."""
COPIES = "copies"
"""The topic that copiers write."""
WRITERS = ("idempotent", "plain", "leader-only", "transactional", "transactional", "old-transactional")
GROUPS = ("classic-members", "consumer-members", "copiers", "old-copiers")
"""The kinds of clients that are drawn; see load.py."""


class TopicSettings(NamedTuple):
    """A topic that clients use from the beginning. ``is_unclean``: replicas that are not in sync may lead it."""

    name: str
    partitions: int
    replicas: int
    is_unclean: bool = False
    segment_ms: int = 604_800_000


class Settings(NamedTuple):
    """The settings of a run. Durations have their units in their names; ``clock_rates`` are by broker."""

    brokers: int
    directories: int
    topics: list[TopicSettings]
    min_insync_replicas: int
    acks_after: str
    internal_replicas: int
    session_timeout_ms: int
    lag_ms: int
    fetch_bytes: int
    load_s: float
    link_ms: float
    disk_ms: float
    zookeeper_ms: float
    clock_rates: list[float]
    clients: list[str]

    @property
    def nodes(self) -> range:
        """The ids of the brokers."""
        return range(1, self.brokers + 1)

    @classmethod
    def draw(cls, rng: Random) -> Settings:
        """Draw the settings of a run."""
        brokers = rng.choice((3, 3, 3, 3, 4))
        replicas = rng.choice((1, 2, 3, 3, 3, 3))
        segment_ms = rng.choice((604_800_000, 604_800_000, 3000))
        topics = [TopicSettings(name, count, replicas, False, segment_ms) for name, count in TOPICS.items()]
        if rng.random() < 0.4:
            topics.append(TopicSettings("metrics", 1, max(2, replicas), is_unclean=True))
        clients = ["one-in-flight", *rng.sample(WRITERS, rng.choice((1, 2)))]
        if rng.random() < GROUP_SHARE:
            clients.append(rng.choice(GROUPS))
        if any(name.endswith("copiers") for name in clients):
            topics.append(TopicSettings(COPIES, 1, replicas))
        rates = [rng.choice((1.0, 1.0, 1.0, 1.001, 0.999, 1.05, 0.95)) for _ in range(brokers)]
        return cls(
            brokers=brokers,
            directories=rng.choice((1, 1, 2)),
            topics=topics,
            min_insync_replicas=rng.choice((1, 2, 2)),
            acks_after=rng.choice((KAFKA, FSYNC)),
            internal_replicas=rng.choice((1, 2, 3, 3, 3)),
            session_timeout_ms=rng.choice((4000, 6000, 10_000)),
            lag_ms=rng.choice((2000, 4000, 8000)),
            # A follower that gets a batch at a time is seen at each place between the high watermark and the end.
            fetch_bytes=rng.choice((1_048_576, 1_048_576, 400)),
            load_s=rng.uniform(20, 40),
            link_ms=rng.choice((0.1, 1.0, 5.0, 20.0)),
            disk_ms=rng.choice((0.1, 1.0, 5.0, 20.0)),
            zookeeper_ms=rng.choice((0.5, 2.0, 10.0, 50.0)),
            clock_rates=rates,
            clients=clients,
        )

    def properties(self, node: int) -> dict[str, str]:
        """The properties of a broker."""
        return {
            "broker.id": str(node),
            "listeners": f"PLAINTEXT://{host_of(node)}:{PORT}",
            "log.dirs": ",".join(f"/data{number}" for number in range(1, self.directories + 1)),
            "zookeeper.connect": "zookeeper/kafka",
            "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
            "replica.lag.time.max.ms": str(self.lag_ms),
            "replica.fetch.wait.max.ms": "500",
            "replica.fetch.max.bytes": str(self.fetch_bytes),
            "min.insync.replicas": str(self.min_insync_replicas),
            "default.replication.factor": str(min(3, self.brokers)),
            "kafkacompat.acks.after": self.acks_after,
            "auto.create.topics.enable": "false",
            "controlled.shutdown.retry.backoff.ms": "500",
            "leader.imbalance.check.interval.seconds": "10",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": str(self.internal_replicas),
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": str(self.internal_replicas),
            "transaction.state.log.min.isr": str(min(self.internal_replicas, self.min_insync_replicas)),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "group.initial.rebalance.delay.ms": "500",
            "group.min.session.timeout.ms": "1000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.heartbeat.interval.ms": "500",
            "group.consumer.heartbeat.interval.ms": "1000",
            # The scrub's worker reads files of the operating system.
            "kafkacompat.scrub.interval.ms": "-1",
        }

    def encode(self) -> dict[str, Any]:
        """Return the settings for JSON."""
        return {**self._asdict(), "topics": [list(topic) for topic in self.topics]}

    @classmethod
    def decode(cls, fields: dict[str, Any]) -> Settings:
        """Return the settings of JSON; raises TypeError and ValueError."""
        return cls(**{**fields, "topics": [TopicSettings(*topic) for topic in fields["topics"]]})


PORT = 9092


def host_of(node: int) -> str:
    """Return the host name of a broker."""
    return f"broker-{node}"
