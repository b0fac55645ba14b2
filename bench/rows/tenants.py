"""Instances: what they cost a broker, its throughput and its latency, and how an instance compares with Apache Kafka itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from statistics import median, quantiles

from bench.load import Load, produce
from bench.row import KAFKA, RECORDS, Goal, Options, Row, Samples, throughput_goals
from bench.rows import fetch as raw_fetch
from bench.rows.produce import REQUESTS, run_load
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker, KafkacompatBroker, answers_api_versions
from compat_tests.instances import alter_instance, await_listeners, list_properties, running_instance
from compat_tests.ports import free_port
from compat_tests.raw_client import RawClient
from compat_tests.tenants.pacing import Pace, Place, Sample, paced
from compat_tests.waiting import pause
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

ARTICLE_PARTITIONS = 3
INSTANCES = 1000
TOPICS = ("clicks", "orders", "views")
LOADED = 100
CLIENT_RATE = 5.0
LOAD_SECONDS = 10.0
WARM_UP_SECONDS = 2.0
SETTLING_SECONDS = 2.0
NETWORKS = 10_000
FIRST_ADDRESS = IPv4Address("10.0.0.1")
CONNECTIONS = 2000
CREATE_TOPICS_VERSION = 5


def measure_mapping(broker: Broker, options: Options) -> Samples:
    """Run raw produce and raw fetch without an instance, then beside one, then through it."""
    without = _run_both(broker, options)
    with running_instance(broker, "shop") as seen:
        beside = _run_both(broker, options)
        through = _run_both(seen, options)
    samples: Samples = {}
    for kind in without:
        samples[f"{kind}: records/s without instances"] = without[kind]["records/s"]
        samples[f"{kind}: own listener beside an instance/without"] = (
            beside[kind]["records/s"] / without[kind]["records/s"]
        )
        samples[f"{kind}: through the instance/own listener"] = through[kind]["records/s"] / beside[kind]["records/s"]
        cpu = "broker CPU s per million records"
        samples[f"{kind}: CPU through the instance/own listener"] = through[kind][cpu] / beside[kind][cpu]
    return samples


def _run_both(broker: Broker, options: Options) -> dict[str, Samples]:
    return {"produce": run_load(broker, options.count(REQUESTS)), "fetch": raw_fetch.measure(broker, options)}


def measure_article(broker: Broker, options: Options) -> Samples:
    """Produce to one topic of three partitions; on this broker through an instance."""
    with ExitStack() as stack:
        if isinstance(broker, KafkacompatBroker):
            broker = stack.enter_context(running_instance(broker, "shop"))
        load, requests = Load.of(), options.count(2 * REQUESTS)
        topic = stack.enter_context(a_topic(broker, ARTICLE_PARTITIONS))
        with Usage(broker) as usage:
            records = produce(broker.port, topic, load, partitions=ARTICLE_PARTITIONS, requests=requests)
        return usage.samples(records, requests * ARTICLE_PARTITIONS * len(load.batch))


def measure_whitelist(broker: Broker, options: Options) -> Samples:
    """Run raw produce, and open connections, through an instance without a whitelist and through one with 10,000 networks."""
    networks = ",".join(f"{FIRST_ADDRESS + number}/32" for number in range(options.count(NETWORKS)))
    figures: dict[str, tuple[float, float]] = {}
    for name, properties in (("open", {}), ("listed", {"whitelist": f"{networks},127.0.0.0/8"})):
        with running_instance(broker, name, properties) as seen:
            records = run_load(seen, options.count(REQUESTS))["records/s"]
            figures[name] = records, _measure_connections(seen.port, options.count(CONNECTIONS))
    plain, listed = figures["open"], figures["listed"]
    return {
        "records/s without a whitelist": plain[0],
        "records/s, with 10,000 networks/without": listed[0] / plain[0],
        "connections/s without a whitelist": plain[1],
        "connections/s, with 10,000 networks/without": listed[1] / plain[1],
    }


def _measure_connections(port: int, count: int) -> float:
    """Open connections one after the other, each with an ApiVersions request; return how many a second."""
    begun = time.monotonic()
    for _ in range(count):
        assert answers_api_versions(port), "the broker has closed a connection"
    return count / (time.monotonic() - begun)


def measure_thousand(broker: Broker, options: Options) -> Samples:
    """Create 1,000 instances and put 100 of them under load; before it, put the same load on one instance of another broker."""
    alone = type(broker)(broker.folder.with_name(f"{broker.folder.name}-alone"), broker.properties)
    seconds = max(1.0, LOAD_SECONDS * options.scale)
    loaded = options.count(LOADED)
    with alone, running_instance(alone, "shop") as seen:
        topics = [f"{topic}-{number}" for topic in TOPICS for number in range(-(-loaded // len(TOPICS)))]
        create_topics(seen.port, topics)
        single = _run_paced([Place(seen.port, topic) for topic in topics[:loaded]], seconds)
    with broker:
        names = [f"tenant-{number}" for number in range(max(loaded, options.count(INSTANCES)))]
        creation_seconds, ports = _create_instances(broker, names)
        for port in ports:
            create_topics(port, TOPICS)
        pause(SETTLING_SECONDS)
        idle_bytes = broker.resident_bytes()
        many = _run_paced([Place(port, TOPICS[0]) for port in ports[:: len(ports) // loaded][:loaded]], seconds)
        resident_bytes = broker.resident_bytes()
    return {
        "instances": len(names),
        "creation of an instance ms, median": median(creation_seconds) * 1e3,
        "creation of an instance ms, longest": max(creation_seconds) * 1e3,
        "resident MB, idle": idle_bytes / 1e6,
        "resident MB": resident_bytes / 1e6,
        "one instance: produce p50 us": find_percentile(single, 50),
        "one instance: produce p99 us": find_percentile(single, 99),
        "1,000 instances: produce p50 us": find_percentile(many, 50),
        "1,000 instances: produce p99 us": find_percentile(many, 99),
        "produce p99, 1,000 instances/one": find_percentile(many, 99) / find_percentile(single, 99),
    }


def _create_instances(broker: Broker, names: Sequence[str]) -> tuple[list[float], list[int]]:
    """Create instances one after the other; return the seconds of each request, and the ports."""
    seconds, ports = [], []
    with RawClient(broker.port) as client:
        for name in names:
            ports.append(free_port())
            properties = list_properties(name, ports[-1], {})
            begun = time.monotonic()
            alter_instance(client, name, properties)
            seconds.append(time.monotonic() - begun)
    await_listeners(ports)
    return seconds, ports


def create_topics(port: int, topics: Sequence[str]) -> None:
    """Create topics of one partition by one request."""
    wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in topics]
    with RawClient(port) as client:
        request = CreateTopicsRequest(topics=wanted, timeout_ms=30_000)
        answer = client.call(request, CreateTopicsResponse, CREATE_TOPICS_VERSION)
    assert not any(topic.error_code for topic in answer.topics), answer


def _run_paced(places: Sequence[Place], seconds: float) -> list[Sample]:
    """Let each place have its client for a while; return the records without those of the warm-up."""
    with paced(Pace(places, CLIENT_RATE, has_consumers=False)) as load:
        pause(WARM_UP_SECONDS)
        warm = time.monotonic()
        pause(seconds)
        samples = [sample for sample in load.finish() if sample.due >= warm]
    assert all(sample.acknowledged_s is not None for sample in samples), "records without an acknowledgement"
    return samples


def find_percentile(samples: Sequence[Sample], percent: int) -> float:
    """Return a percentile of the times to the acknowledgement, in microseconds."""
    values = [sample.acknowledged_s * 1e6 for sample in samples if sample.acknowledged_s is not None]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


ROWS = [
    Row(
        "tenants-mapping",
        "Raw produce and fetch through an instance",
        "The loads of raw produce and raw fetch on a broker without instances, on its own listener beside one instance, and through the "
        "instance, whose names the broker translates in each request.",
        measure_mapping,
        [
            Goal("produce: through the instance/own listener", 0.9, at_least=True, is_ratio=False),
            Goal("fetch: through the instance/own listener", 0.9, at_least=True, is_ratio=False),
            Goal("produce: own listener beside an instance/without", 0.95, at_least=True, is_ratio=False),
            Goal("fetch: own listener beside an instance/without", 0.95, at_least=True, is_ratio=False),
        ],
        contenders=(RECORDS,),
    ),
    Row(
        "tenants-thousand",
        "1,000 instances",
        "1,000 instances with a listener each and three topics of one partition, created one after the other. Then a client of each of "
        "100 instances sends five 100-byte records a second, one a request, acks=1. Before that, 100 clients of one instance of another "
        "broker send the same to 100 topics.",
        measure_thousand,
        [
            Goal("resident MB", 300, at_least=False, is_ratio=False),
            Goal("produce p99, 1,000 instances/one", 1.3, at_least=False, is_ratio=False),
            Goal("creation of an instance ms, median", 5, at_least=False, is_ratio=False),
        ],
        contenders=(RECORDS,),
        fresh=True,
    ),
    Row(
        "tenants-article",
        "The load of CKafka's article, through an instance",
        "One topic of three partitions on one node, raw produce of 16 KB batches as above. kafkacompat serves it to the clients of an "
        "instance; Apache Kafka has none.",
        measure_article,
        throughput_goals(1.0, 0.8),
        contenders=(RECORDS, KAFKA),
    ),
    Row(
        "tenants-whitelist",
        "A whitelist of 10,000 networks",
        "Raw produce through an instance without a whitelist, and through one with 10,000 networks; and connections one after the "
        "other, each with an ApiVersions request.",
        measure_whitelist,
        [
            Goal("records/s, with 10,000 networks/without", 0.95, at_least=True, is_ratio=False),
            Goal("connections/s, with 10,000 networks/without", 0.95, at_least=True, is_ratio=False),
        ],
        contenders=(RECORDS,),
    ),
]
