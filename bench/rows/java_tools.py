"""Kafka's own ProducerPerformance and ConsumerPerformance, with the figures that they print."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from bench.row import Options, Row, Samples, throughput_goals
from bench.topics import a_topic, record_count
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.clusters import Cluster
from compat_tests.java_tools import java_command

PARTITIONS = 6
RECORDS = 2_000_000
RECORD_BYTES = 100
JVM = ("-XX:+UseG1GC",)
GOALS = throughput_goals(1.0, 0.7)
SIZES = {10: 3_000_000, 100: 2_000_000, 1000: 400_000, 10_000: 40_000, 100_000: 4_000}


def producer_command(
    broker: Broker | Cluster,
    topic: str,
    records: int,
    record_bytes: int = RECORD_BYTES,
    properties: Mapping[str, str] | None = None,
) -> list[str]:
    load = ["--num-records", str(records), "--record-size", str(record_bytes), "--throughput", "-1"]
    target = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    given = [f"{name}={value}" for name, value in (properties or {}).items()]
    arguments = [*target, *load, *(["--command-property", *given] if given else [])]
    return java_command("org.apache.kafka.tools.ProducerPerformance", arguments, jvm=JVM, heap="512m")


def consumer_command(broker: Broker | Cluster, topic: str, records: int, group: str) -> list[str]:
    target = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group]
    load = ["--num-records", str(records), "--timeout", "60000", "--hide-header"]
    return java_command("org.apache.kafka.tools.ConsumerPerformance", [*target, *load], jvm=JVM, heap="512m")


def run_together(commands: Sequence[list[str]]) -> list[str]:
    """Start all programs at once; return the output of each. Raises AssertionError if one fails."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate(timeout=600)[0] for process in running]
    failed = [output for process, output in zip(running, outputs, strict=True) if process.returncode != 0]
    assert not failed, failed
    return outputs


def producer_seconds(output: str, records: int) -> float:
    """Return the duration that the last line of ProducerPerformance gives, in seconds."""
    totals = re.findall(rf"^{records} records sent, ([\d.]+) records/sec", output, re.MULTILINE)
    return records / float(totals[-1])


def consumer_span(output: str) -> tuple[float, float]:
    """Return begin and end of one ConsumerPerformance, in seconds since 1970."""
    begin, end = output.strip().splitlines()[-1].split(", ")[:2]
    return _parse_time(begin), _parse_time(end)


def _parse_time(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S:%f").timestamp()


def fill_topic(broker: Broker, topic: str, records: int, record_bytes: int = RECORD_BYTES) -> str:
    """Produce the records and check that the topic holds them; return the tool's output."""
    output = run_together([producer_command(broker, topic, records, record_bytes)])[0]
    assert record_count(broker, topic, PARTITIONS) == records
    return output


def measure_producer(record_bytes: int, full_count: int, broker: Broker, options: Options) -> Samples:
    """Produce records of one size with the tool's defaults (acks=all, idempotent)."""
    records = options.count(full_count)
    with a_topic(broker, PARTITIONS) as topic, Usage(broker) as usage:
        output = fill_topic(broker, topic, records, record_bytes)
    return usage.samples(records, records * record_bytes, producer_seconds(output, records))


def measure_consumers(consumers: int, broker: Broker, options: Options) -> Samples:
    """Let each consumer, in a group of its own, read all records."""
    records = options.count(RECORDS)
    with a_topic(broker, PARTITIONS) as topic:
        fill_topic(broker, topic, records)
        commands = [consumer_command(broker, topic, records, f"{topic}-{number}") for number in range(consumers)]
        with Usage(broker) as usage:
            spans = [consumer_span(output) for output in run_together(commands)]
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return usage.samples(consumers * records, consumers * records * RECORD_BYTES, seconds)


def measure_both(broker: Broker, options: Options) -> Samples:
    """Produce and consume the same records at once; timed from the consumer's start to its last record."""
    records = options.count(RECORDS)
    with a_topic(broker, PARTITIONS) as topic, Usage(broker) as usage:
        commands = [producer_command(broker, topic, records), consumer_command(broker, topic, records, topic)]
        begin, end = consumer_span(run_together(commands)[1])
    return usage.samples(records, records * RECORD_BYTES, end - begin)


ROWS = [
    Row(
        "producer-performance",
        "ProducerPerformance",
        "Kafka's tool with its defaults: 100-byte records, six partitions, acks=all, idempotent.",
        partial(measure_producer, RECORD_BYTES, RECORDS),
        GOALS,
    ),
    Row(
        "consumer-performance-1",
        "ConsumerPerformance, one consumer",
        "Kafka's tool with its defaults; it reads the records that ProducerPerformance wrote.",
        partial(measure_consumers, 1),
        GOALS,
    ),
    Row(
        "consumer-performance-3",
        "ConsumerPerformance, three consumers",
        "Three consumers at once, each in a group of its own, so that each reads everything.",
        partial(measure_consumers, 3),
        GOALS,
    ),
    Row(
        "both-at-once",
        "ProducerPerformance and ConsumerPerformance at once",
        "One ProducerPerformance and one ConsumerPerformance, started together on an empty topic.",
        measure_both,
        GOALS,
    ),
    *(
        Row(
            f"record-size-{size}",
            f"ProducerPerformance, records of {size:,} bytes",
            f"The ProducerPerformance row with records of {size:,} bytes.",
            partial(measure_producer, size, count),
            GOALS,
        )
        for size, count in SIZES.items()
        if size != RECORD_BYTES
    ),
]
