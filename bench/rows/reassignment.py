"""Replicas that move under a throttle beside producers, and what a second broker on one machine costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import NewTopic

from bench.load import RECORD_BYTES, Load, produce
from bench.paced import Pace, find_percentile, produce_meanwhile
from bench.row import RECORDS, ClusterRow, Goal, Options, Samples
from bench.rows.cluster import await_records, create_led_topic, produce_for
from bench.rows.failover import create_assigned
from bench.rows.java_tools import producer_command, run_together
from bench.topics import admin_of, await_open, delete_topic, unused_name
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.clusters import Cluster
from compat_tests.waiting import until
from kafkacompat.cli.cluster.reading import PartitionName
from kafkacompat.cli.cluster.reassigning import ClusterMover
from kafkacompat.cli.cluster.spreading import ReplicaMove
from kafkacompat.cli.requests import BlockingConnection

PARTITIONS = 6
BATCH_BYTES = 16_384
SECONDS = 20
THROTTLE = 10_000_000
RATE = 1000.0
QUIET_SECONDS = 5
LONGEST_SECONDS = 300

PAIR = (1, 2)
CPU_PARTITIONS = 2
CPU_REQUESTS = 10_000
CPU_RECORDS = 2_000_000
CPU = "CPU s per million records"
REQUESTS, PRODUCER = "equal requests", "ProducerPerformance"


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
    moves = [ReplicaMove(PartitionName(topic, index), (1, 2), (1, 3)) for index in range(PARTITIONS)]
    with produce_meanwhile(replace(pace, requests=int(RATE * LONGEST_SECONDS))) as meanwhile:
        seconds = move(mover, moves)
    for topic_name in (topic, paced):
        delete_topic(cluster, topic_name)
    return {
        "MB moved": size_bytes / 1e6,
        "seconds": seconds,
        "MB/s": size_bytes / seconds / 1e6,
        "rate / throttle": size_bytes / seconds / THROTTLE,
        "produce p50 us before": find_percentile(quiet, 0.5),
        "produce p50 us meanwhile": find_percentile(meanwhile, 0.5),
        "produce p99 us before": find_percentile(quiet, 0.99),
        "produce p99 us meanwhile": find_percentile(meanwhile, 0.99),
        "produce p99 meanwhile / before": find_percentile(meanwhile, 0.99) / find_percentile(quiet, 0.99),
    }


def move(mover: ClusterMover, moves: list[ReplicaMove]) -> float:
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
    """Give the same work to a single node and to two brokers, first by equal requests, then by Kafka's own producer."""
    single = KafkacompatBroker(Path(f"{cluster.folder}-single"))
    with single:
        alone = _measure_cpu(single, [single], [[1]], options)
    cluster.start()
    try:
        pair = [cluster.brokers[node] for node in PAIR]
        together = _measure_cpu(cluster, pair, [[node] for node in PAIR], options)
    finally:
        cluster.stop()
    return {
        **{f"{load}, one broker: {CPU}": seconds for load, seconds in alone.items()},
        **{f"{load}, two brokers: {CPU}": seconds for load, seconds in together.items()},
        **{f"{load}: two brokers / one broker": together[load] / alone[load] for load in alone},
    }


def _measure_cpu(
    served: Broker | Cluster, brokers: Sequence[Broker], homes: Sequence[list[int]], options: Options
) -> dict[str, float]:
    """Return the CPU seconds of these brokers per million records by load; *homes* has the replicas of a partition of each."""
    load, requests = Load.of(BATCH_BYTES, RECORD_BYTES), options.count(CPU_REQUESTS) // len(brokers)
    topics = [_create_on(served, [replicas] * CPU_PARTITIONS) for replicas in homes]

    def send_requests(count: int) -> int:
        return sum(
            produce(broker.port, topic, load, partitions=CPU_PARTITIONS, requests=count)
            for broker, topic in zip(brokers, topics, strict=True)
        )

    shared = _create_on(served, [homes[index % len(homes)] for index in range(PARTITIONS)])

    def run_producer(count: int) -> int:
        run_together([producer_command(served, shared, count)])
        return count

    return {
        REQUESTS: _divide_cpu(brokers, send_requests, requests),
        PRODUCER: _divide_cpu(brokers, run_producer, options.count(CPU_RECORDS)),
    }


def _divide_cpu(brokers: Sequence[Broker], send: Callable[[int], int], count: int) -> float:
    send(count // 10)
    begun = sum(broker.cpu_seconds() for broker in brokers)
    records = send(count)
    return (sum(broker.cpu_seconds() for broker in brokers) - begun) / records * 1e6


def _create_on(served: Broker | Cluster, assignment: list[list[int]]) -> str:
    topic, admin = unused_name(), admin_of(served)
    admin.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(30)
    await_open(served, topic, len(assignment))
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
        "A single node, and two brokers of a cluster whose third broker has nothing to do and does not count. Partitions have one replica. "
        "Equal requests hold two 16 KB batches each; each of two brokers gets half of them. ProducerPerformance writes 100-byte records to "
        "six partitions, so that a request to each of two brokers holds fewer batches than one to a single node.",
        measure_two,
        [
            Goal(f"{load}: two brokers / one broker", 1.15, at_least=False, is_ratio=False)
            for load in (REQUESTS, PRODUCER)
        ],
        contenders=(RECORDS,),
        fresh=True,
    ),
]
