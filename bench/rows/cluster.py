"""Three nodes: the loads of LinkedIn's benchmark of 2014, latency at acks=all, start, and a replica that catches up.

The article is "Benchmarking Apache Kafka: 2 Million Writes Per Second (On Three Cheap Machines)" by Jay Kreps, on Kafka 0.8.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from confluent_kafka.admin import NewTopic

from bench.load import RECORD_BYTES, Load, produce
from bench.paced import Pace, find_percentile, produce_meanwhile, run_pace
from bench.row import ClusterRow, Goal, Options, Samples, throughput_goals
from bench.rows.java_tools import (
    PARTITIONS,
    consumer_command,
    consumer_span,
    producer_command,
    producer_seconds,
    run_together,
)
from bench.topics import a_topic, admin_of, await_open, delete_topic, record_count, unused_name
from bench.usage import ClusterUsage
from compat_tests.clusters import NODES, Cluster
from compat_tests.waiting import pause, until

REPLICAS = 3
RECORDS = 2_000_000
PRODUCERS = CONSUMERS = 3
SETTLING_SECONDS = 2

ARTICLE_BUFFER = {"buffer.memory": "67108864"}
ASYNCHRONOUS: Mapping[str, str] = {"acks": "1", "batch.size": "8196", **ARTICLE_BUFFER}
SYNCHRONOUS: Mapping[str, str] = {"acks": "all", "batch.size": "64000", **ARTICLE_BUFFER}
"""The producer's properties in the article; idempotence, a default since 3.0, needs acks=all."""

LATENCY_RATE = 1000.0
LATENCY_SECONDS = 10

CATCH_UP_PARTITIONS = 6
LEADER, FOLLOWER, ABSENT = NODES
CATCH_UP_BATCH_BYTES = 16_384
QUIET_SECONDS = 5
LONGEST_CATCH_UP_SECONDS = 300

GOALS = throughput_goals(1.0, 0.5)


def measure_producers(
    producers: int, replicas: int, properties: Mapping[str, str], cluster: Cluster, options: Options
) -> Samples:
    """Let each producer send its share; the duration is the longest that a producer reports."""
    share = options.count(RECORDS) // producers
    with a_topic(cluster, PARTITIONS, replicas) as topic:
        command = producer_command(cluster, topic, share, properties=properties)
        with ClusterUsage(cluster) as usage:
            outputs = run_together([command] * producers)
        await_records(cluster, topic, producers * share)
    seconds = max(producer_seconds(output, share) for output in outputs)
    return usage.samples(producers * share, producers * share * RECORD_BYTES, seconds)


def await_records(cluster: Cluster, topic: str, records: int) -> None:
    """Wait until all records are below the high watermarks: with acks=1 the followers may lag."""
    until(lambda: record_count(cluster, topic, PARTITIONS) == records)


def measure_consumers(consumers: int, cluster: Cluster, options: Options) -> Samples:
    """Let each consumer, in a group of its own, read all records."""
    records = options.count(RECORDS)
    with a_topic(cluster, PARTITIONS, REPLICAS) as topic:
        run_together([producer_command(cluster, topic, records, properties=ASYNCHRONOUS)])
        await_records(cluster, topic, records)
        commands = [consumer_command(cluster, topic, records, f"{topic}-{number}") for number in range(consumers)]
        with ClusterUsage(cluster) as usage:
            spans = [consumer_span(output) for output in run_together(commands)]
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return usage.samples(consumers * records, consumers * records * RECORD_BYTES, seconds)


def measure_both(cluster: Cluster, options: Options) -> Samples:
    """Produce and consume the same records at once; timed from the consumer's start to its last record."""
    records = options.count(RECORDS)
    with a_topic(cluster, PARTITIONS, REPLICAS) as topic, ClusterUsage(cluster) as usage:
        producer = producer_command(cluster, topic, records, properties=ASYNCHRONOUS)
        begin, end = consumer_span(run_together([producer, consumer_command(cluster, topic, records, topic)])[1])
    return usage.samples(records, records * RECORD_BYTES, end - begin)


def measure_latency(cluster: Cluster, options: Options) -> Samples:
    """Send 1,000 records a second to the leader, which acknowledges them once the followers have them."""
    load = Load.of(RECORD_BYTES, RECORD_BYTES)
    requests = options.count(int(LATENCY_RATE * LATENCY_SECONDS))
    with a_topic(cluster, 1, REPLICAS) as topic, ClusterUsage(cluster) as usage:
        port = cluster.brokers[leader_of(cluster, topic)].port
        latencies = run_pace(Pace(port, topic, 1, load, LATENCY_RATE, requests, acks=-1))
    figures = usage.samples(requests * load.records, requests * len(load.batch), requests / LATENCY_RATE)
    return {**figures, **latencies.samples()}


def leader_of(cluster: Cluster, topic: str) -> int:
    """Return the node that leads partition 0."""
    leader: int = admin_of(cluster).list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    return leader


def measure_start(cluster: Cluster, _: Options) -> Samples:
    """Start a cluster over empty folders; read its memory once it is idle."""
    seconds = cluster.start()
    try:
        pause(SETTLING_SECONDS)
        return {
            "seconds until ready": seconds,
            "resident MB a broker": cluster.resident_bytes() / len(NODES) / 1e6,
            "ZooKeeper resident MB": cluster.zookeeper_resident_bytes() / 1e6,
        }
    finally:
        cluster.stop()


def measure_catch_up(cluster: Cluster, options: Options) -> Samples:
    """Stop a follower, write what it misses, start it, and produce by the clock until it is in sync."""
    load = Load.of(CATCH_UP_BATCH_BYTES, RECORD_BYTES)
    requests = max(1, int(options.backlog_gigabytes * 1e9 / CATCH_UP_PARTITIONS / len(load.batch)))
    size_bytes = requests * CATCH_UP_PARTITIONS * len(load.batch)
    port = cluster.brokers[LEADER].port
    backlog, paced = create_led_topic(cluster, CATCH_UP_PARTITIONS), create_led_topic(cluster, 1)
    cluster.stop_node(ABSENT)
    until(lambda: in_sync_counts(cluster, backlog) == {REPLICAS - 1})
    records = produce(port, backlog, load, partitions=CATCH_UP_PARTITIONS, requests=requests)
    await_records(cluster, backlog, records)
    pace = Pace(port, paced, 1, Load.of(RECORD_BYTES, RECORD_BYTES), LATENCY_RATE, 0, acks=-1)
    quiet = produce_for(pace, QUIET_SECONDS)
    seconds, meanwhile = catch_up(cluster, backlog, pace)
    for topic in (backlog, paced):
        delete_topic(cluster, topic)
    return {
        "catch-up seconds": seconds,
        "catch-up MB/s": size_bytes / seconds / 1e6,
        "produce p50 us before": find_percentile(quiet, 0.5),
        "produce p50 us meanwhile": find_percentile(meanwhile, 0.5),
        "produce p99 us before": find_percentile(quiet, 0.99),
        "produce p99 us meanwhile": find_percentile(meanwhile, 0.99),
        "produce p99 meanwhile / before": find_percentile(meanwhile, 0.99) / find_percentile(quiet, 0.99),
    }


def create_led_topic(cluster: Cluster, partitions: int) -> str:
    """Create a topic whose partitions all have the same leader; return its name once it leads them."""
    topic = unused_name()
    admin = admin_of(cluster)
    assignment = [[LEADER, FOLLOWER, ABSENT]] * partitions
    new = NewTopic(topic, partitions, replica_assignment=assignment, config={"file.delete.delay.ms": "0"})
    admin.create_topics([new])[topic].result(30)
    await_open(cluster, topic, partitions)
    until(lambda: in_sync_counts(cluster, topic) == {REPLICAS})
    return topic


def in_sync_counts(cluster: Cluster, topic: str) -> set[int]:
    """Return how many replicas are in sync, of all partitions together."""
    partitions = admin_of(cluster).list_topics(topic, timeout=10).topics[topic].partitions
    return {len(partition.isrs) for partition in partitions.values()}


def produce_for(pace: Pace, seconds: int) -> list[float]:
    """Produce by the clock for some seconds; return the microseconds of each acknowledgement, sorted."""
    requests = int(pace.rate * seconds)
    with produce_meanwhile(replace(pace, requests=requests)) as microseconds:
        pause(seconds)
    return microseconds


def catch_up(cluster: Cluster, topic: str, pace: Pace) -> tuple[float, list[float]]:
    """Start the absent node, and produce until it is in sync; return the seconds, and the sorted microseconds."""
    requests = int(pace.rate * LONGEST_CATCH_UP_SECONDS)
    with produce_meanwhile(replace(pace, requests=requests)) as microseconds:
        begun = time.monotonic()
        cluster.start_node(ABSENT)
        until(lambda: in_sync_counts(cluster, topic) == {REPLICAS}, timeout_seconds=LONGEST_CATCH_UP_SECONDS)
        seconds = time.monotonic() - begun
    return seconds, microseconds


def _producers(
    name: str, title: str, about: str, replicas: int, properties: Mapping[str, str], article: float, producers: int = 1
) -> ClusterRow:
    measure = partial(measure_producers, producers, replicas, properties)
    given = ", ".join(f"{name}={value}" for name, value in properties.items())
    return _throughput(name, title, f"{about} The producer has {given}.", measure, article)


def _throughput(
    name: str, title: str, about: str, measure: Callable[[Cluster, Options], Samples], article: float
) -> ClusterRow:
    article_figures = {"records/s": article, "MB/s": article * RECORD_BYTES / 1e6}
    return ClusterRow(f"cluster-{name}", f"Three nodes: {title}", about, measure, GOALS, article=article_figures)


ROWS = [
    _producers(
        "produce-unreplicated",
        "one producer, no replication",
        "ProducerPerformance writes 100-byte records to six partitions, each on one broker.",
        1,
        ASYNCHRONOUS,
        821_557,
    ),
    _producers(
        "produce-asynchronous",
        "one producer, three replicas, acks=1",
        "The same with three replicas; leaders acknowledge before their followers have the records.",
        REPLICAS,
        ASYNCHRONOUS,
        786_980,
    ),
    _producers(
        "produce-synchronous",
        "one producer, three replicas, acks=all",
        "The same; leaders acknowledge once all replicas in sync have the records.",
        REPLICAS,
        SYNCHRONOUS,
        421_823,
    ),
    _producers(
        "produce-three",
        "three producers, three replicas, acks=1",
        "Three producers at once, each with a third of the records.",
        REPLICAS,
        ASYNCHRONOUS,
        2_024_032,
        producers=PRODUCERS,
    ),
    _throughput(
        "consume-one",
        "one consumer",
        "ConsumerPerformance reads what ProducerPerformance wrote to three replicas.",
        partial(measure_consumers, 1),
        940_521,
    ),
    _throughput(
        "consume-three",
        "three consumers",
        "Three consumers at once, each in a group of its own, so that each reads everything.",
        partial(measure_consumers, CONSUMERS),
        2_615_968,
    ),
    _throughput(
        "both-at-once",
        "one producer and one consumer at once",
        "Both tools, started together on an empty topic; three replicas, acks=1.",
        measure_both,
        795_064,
    ),
    ClusterRow(
        "cluster-latency",
        "Three nodes: latency at 1,000 records a second, acks=all",
        "One 100-byte record a request, one partition with three replicas; a consumer long-polls beside the producer. "
        "The article gives neither the number of replicas of its partition nor its acks.",
        measure_latency,
        [
            Goal(f"{kind} {share} us", 1.0, at_least=False)
            for kind in ("produce", "end-to-end")
            for share in ("p50", "p99")
        ],
        article={"end-to-end p50 us": 2000, "end-to-end p99 us": 3000, "end-to-end p99.9 us": 14_000},
    ),
    ClusterRow(
        "cluster-start",
        "Three nodes: start",
        "New nodes over empty folders (Kafka's storage is formatted before), until the metadata of each names all three. "
        "That of kafkacompat includes the start of ZooKeeper.",
        measure_start,
        [
            Goal("seconds until ready", 3.0, at_least=False, is_ratio=False),
            Goal("resident MB a broker", 60, at_least=False, is_ratio=False),
        ],
        fresh=True,
    ),
    ClusterRow(
        "cluster-catch-up",
        "Three nodes: a replica catches up",
        "One broker leads six partitions and one more, to which 1,000 records a second are produced with acks=all. "
        "A follower is stopped, the six partitions are filled with 16 KB batches (`--backlog-gigabytes`, 1 unless given), and the "
        "follower is started; until it is in sync everywhere, the pace goes on.",
        measure_catch_up,
        [Goal("produce p99 meanwhile / before", 2.0, at_least=False, is_ratio=False)],
    ),
]
