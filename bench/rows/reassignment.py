"""Replicas that move under a throttle beside producers, and what a second broker on one machine costs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import NewTopic

from bench.load import RECORD_BYTES, Load, produce
from bench.paced import Pace, percentile, produce_meanwhile
from bench.row import RECORDS, ClusterRow, Goal, Options, Samples
from bench.rows.cluster import await_records, create_led_topic, produce_for
from bench.rows.failover import create_assigned
from bench.topics import a_topic, admin_of, await_open, delete_topic, unused_name
from compat_tests.brokers import KafkacompatBroker
from compat_tests.clusters import Cluster
from compat_tests.waiting import until
from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.reassigning import ClusterMover
from kafkacompat.cli.cluster.spreading import PartitionMove
from kafkacompat.cli.requests import BlockingConnection

PARTITIONS = 6
BATCH_BYTES = 16_384
SECONDS = 20
THROTTLE = 10_000_000
RATE = 1000.0
QUIET_SECONDS = 5
LONGEST_SECONDS = 300

CPU_PARTITIONS = 2
CPU_REQUESTS = 10_000


def measure_throttle(cluster: Cluster, options: Options) -> Samples:
    """Move replicas from broker 2 to broker 3 at a throttle, and produce to other partitions meanwhile."""
    load = Load.of(BATCH_BYTES, RECORD_BYTES)
    requests = options.count(int(SECONDS * THROTTLE / PARTITIONS / len(load.batch)))
    size_bytes = requests * PARTITIONS * len(load.batch)
    topic = create_assigned(cluster, [[1, 2]] * PARTITIONS)
    paced = create_led_topic(cluster, 1)
    port = cluster.brokers[1].port
    await_records(cluster, topic, produce(port, topic, load, partitions=PARTITIONS, requests=requests))
    pace = Pace(port, paced, 1, Load.of(RECORD_BYTES, RECORD_BYTES), RATE, 0, acks=-1)
    quiet = produce_for(pace, QUIET_SECONDS)
    mover = ClusterMover([("127.0.0.1", broker.port) for broker in cluster.brokers.values()], BlockingConnection)
    moves = [PartitionMove(PartitionName(topic, index), (1, 2), (1, 3)) for index in range(PARTITIONS)]
    with produce_meanwhile(replace(pace, requests=int(RATE * LONGEST_SECONDS))) as meanwhile:
        seconds = move(mover, moves)
    for each in (topic, paced):
        delete_topic(cluster, each)
    return {
        "MB moved": size_bytes / 1e6,
        "seconds": seconds,
        "MB/s": size_bytes / seconds / 1e6,
        "rate / throttle": size_bytes / seconds / THROTTLE,
        "produce p50 us before": percentile(quiet, 0.5),
        "produce p50 us meanwhile": percentile(meanwhile, 0.5),
        "produce p99 us before": percentile(quiet, 0.99),
        "produce p99 us meanwhile": percentile(meanwhile, 0.99),
        "produce p99 meanwhile / before": percentile(meanwhile, 0.99) / percentile(quiet, 0.99),
    }


def move(mover: ClusterMover, moves: list[PartitionMove]) -> float:
    """Move replicas at the throttle; return the seconds from the request until no reassignment is left."""
    layout = mover.read_layout()
    mover.set_throttle(layout, moves, THROTTLE)
    begun = time.monotonic()
    mover.begin(layout, moves)
    until(lambda: not mover.read_layout().ongoing, timeout_seconds=LONGEST_SECONDS)
    seconds = time.monotonic() - begun
    mover.remove_throttle(layout)
    return seconds


def measure_two(cluster: Cluster, options: Options) -> Samples:
    """Produce the same load to a single node and to two brokers, each of which leads half of the partitions."""
    load = Load.of(BATCH_BYTES, RECORD_BYTES)
    requests = options.count(CPU_REQUESTS)
    single = KafkacompatBroker(Path(f"{cluster.folder}-single"))
    with single, a_topic(single, CPU_PARTITIONS) as topic:
        produce(single.port, topic, load, partitions=CPU_PARTITIONS, requests=requests // 10)
        begun = single.cpu_seconds()
        records = produce(single.port, topic, load, partitions=CPU_PARTITIONS, requests=requests)
        alone = (single.cpu_seconds() - begun) / records * 1e6
    nodes = (1, 2)
    cluster.start()
    try:
        topics = {node: create_on(cluster, node) for node in nodes}
        for node, topic in topics.items():
            produce(cluster.brokers[node].port, topic, load, partitions=1, requests=requests // 10)
        begun = sum(cluster.brokers[node].cpu_seconds() for node in nodes)
        records = sum(
            produce(cluster.brokers[node].port, topic, load, partitions=1, requests=requests)
            for node, topic in topics.items()
        )
        together = (sum(cluster.brokers[node].cpu_seconds() for node in nodes) - begun) / records * 1e6
    finally:
        cluster.stop()
    return {
        "one broker CPU s per million records": alone,
        "two brokers CPU s per million records": together,
        "two brokers / one broker": together / alone,
    }


def create_on(cluster: Cluster, node: int) -> str:
    """Create a topic of one partition whose only replica is on this node."""
    topic = unused_name()
    admin_of(cluster).create_topics([NewTopic(topic, 1, replica_assignment=[[node]])])[topic].result(30)
    await_open(cluster, topic, 1)
    return topic


ROWS = [
    ClusterRow(
        "reassignment",
        "Three nodes: replicas move at a throttle",
        f"Six partitions with two replicas each, led by broker 1, get broker 3 for broker 2 at a throttle of {THROTTLE // 1_000_000} MB "
        "a second, set as kafka-reassign-partitions sets it. Meanwhile broker 1 receives 1,000 records a second for another partition "
        "with three replicas, with acks=all.",
        measure_throttle,
        [
            Goal("rate / throttle", 0.9, at_least=True, is_ratio=False),
            Goal("rate / throttle", 1.1, at_least=False, is_ratio=False),
            Goal("produce p99 meanwhile / before", 2.0, at_least=False, is_ratio=False),
        ],
    ),
    ClusterRow(
        "reassignment-two-brokers",
        "Two brokers on one machine beside one",
        "The same number of 16 KB batches goes to a single node with two partitions, and to two brokers of a cluster that lead one "
        "partition with one replica each, one after the other. The third broker of the cluster has nothing to do and does not count.",
        measure_two,
        [Goal("two brokers / one broker", 1.15, at_least=False, is_ratio=False)],
        contenders=(RECORDS,),
        fresh=True,
    ),
]
