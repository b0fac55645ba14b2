"""Spark's source and sink on a cluster of three brokers, while the leader of what they read and write is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clusters import CLUSTERS, NODES, Cluster
from compat_tests.spark.scene import Query, Record, make_values, produce_values, read_stored
from compat_tests.waiting import until

pytestmark = pytest.mark.spark
PARTITIONS = 3
LIMIT = 60
SESSION_MS = "4000"
TIMEOUTS = {"zookeeper.session.timeout.ms": SESSION_MS, "broker.session.timeout.ms": SESSION_MS}


@pytest.fixture
def cluster(broker_kind: str, tmp_path: Path) -> Iterator[Cluster]:
    with CLUSTERS[broker_kind](tmp_path / "brokers", TIMEOUTS) as running:
        yield running


@pytest.fixture
def queries() -> Iterator[list[Any]]:
    """Queries that stop before the brokers do: they would wait a minute for brokers that are gone."""
    started: list[Any] = []
    yield started
    for query in started:
        query.stop()


def create(cluster: Cluster, topic: str) -> None:
    """Create a topic that broker 1 leads, with a replica on every broker."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, replica_assignment=[list(NODES)] * PARTITIONS)])[topic].result(30)
    await_in_sync(cluster, topic)


def await_in_sync(cluster: Cluster, topic: str) -> None:
    """Wait until every partition has a leader and all its replicas in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})

    def is_in_sync() -> bool:
        described = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
        return len(described) == PARTITIONS and all(len(partition.isrs) == len(NODES) for partition in described)

    until(is_in_sync, timeout_seconds=60)


def read_stream(spark: Any, cluster: Cluster, topic: str) -> Any:
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(LIMIT),
    }
    return spark.readStream.format("kafka").options(**options).load()


def test_the_leader_is_killed_under_a_source_and_a_sink(
    spark: Any, cluster: Cluster, name: str, tmp_path: Path, queries: list[Any]
) -> None:
    """The source reads every acknowledged record once; the sink writes each at least once, and no other."""
    source, target = f"{name}-source", f"{name}-target"
    create(cluster, source)
    create(cluster, target)
    produced = produce_values(cluster, source, make_values(300, PARTITIONS))
    reading = Query(read_stream(spark, cluster, source), tmp_path, {}, checkpoint="reading")
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": target}
    writer = read_stream(spark, cluster, source).selectExpr("value").writeStream.format("kafka").options(**options)
    writing = writer.option("checkpointLocation", str(tmp_path / "writing")).start()
    queries += [reading, writing]
    reading.wait_until(lambda: len(reading.batches) >= 2)

    cluster.kill(NODES[0])
    assert len(reading.records()) < len(produced), "the kill did not fall in the middle"
    produced |= produce_values(cluster, source, make_values(300, PARTITIONS, start=300))
    reading.wait_for(produced)
    assert reading.records() == produced
    cluster.start_node(NODES[0])
    await_in_sync(cluster, source)
    produced |= produce_values(cluster, source, make_values(100, PARTITIONS, start=600))
    reading.wait_for(produced)
    assert reading.records() == produced
    writing.processAllAvailable()
    assert texts(read_stored(cluster, target)) == texts(produced)


def texts(records: set[Record]) -> set[str | None]:
    """Return the values of records."""
    return {value for _, _, value in records}
