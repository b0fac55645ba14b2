"""Topics for one run, and the number of records in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from compat_tests.brokers import Broker
from compat_tests.clusters import Cluster
from compat_tests.waiting import until

_NUMBERS = itertools.count()


def admin_of(broker: Broker | Cluster) -> AdminClient:
    """Return an admin client that logs nothing when the broker stops."""
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def unused_name() -> str:
    """Return a name that is unused in this run."""
    return f"bench-{next(_NUMBERS)}"


def create_topic(broker: Broker | Cluster, partitions: int, replicas: int = 1, **config: str) -> str:
    """Create a topic under a new name; return the name once every partition is open."""
    admin = admin_of(broker)
    topic = unused_name()
    names = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, replicas, config=names)])[topic].result(30)
    await_open(broker, topic, partitions)
    return topic


def await_open(broker: Broker | Cluster, topic: str, partitions: int) -> None:
    """Wait until every partition of a new topic answers its leader's requests."""

    def takes_requests() -> bool:
        try:
            return record_count(broker, topic, partitions) == 0
        except KafkaException:  # the metadata names the partition, and it is not open yet
            return False

    until(takes_requests)


def delete_topic(broker: Broker | Cluster, topic: str) -> None:
    """Delete a topic; its files are deleted a little later."""
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result(30)
    until(lambda: topic not in admin.list_topics(timeout=10).topics)


@contextmanager
def a_topic(broker: Broker | Cluster, partitions: int, replicas: int = 1, **config: str) -> Iterator[str]:
    """Yield a new topic, and delete it after the block."""
    # The files are deleted at once, unsynced data included: otherwise the disk would still write them during the next run.
    topic = create_topic(broker, partitions, replicas, file_delete_delay_ms="0", **config)
    try:
        yield topic
    finally:
        delete_topic(broker, topic)


def record_count(broker: Broker | Cluster, topic: str, partitions: int) -> int:
    """Return the sum of the partitions' end offsets."""
    admin = admin_of(broker)
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    return sum(future.result(30).offset for future in admin.list_offsets(asked).values())
