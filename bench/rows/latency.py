"""Latency: from the moment a batch is due to its acknowledgement, and to its arrival at a waiting consumer."""

from __future__ import annotations

import time

from bench.load import BATCH_BYTES, RECORD_BYTES, Load, produce
from bench.paced import Pace, run_pace
from bench.row import Goal, Options, Row, Samples
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker

SECONDS = 10
PARTITIONS = 6
CALIBRATION_REQUESTS = 20_000

GOALS = [
    Goal("end-to-end p50 us", 1.0, at_least=False),
    Goal("end-to-end p99 us", 1.0, at_least=False),
]


def measure_thousand(broker: Broker, options: Options) -> Samples:
    """Send 1,000 records a second, one a request."""
    return _measure_load(broker, options, Load.of(RECORD_BYTES, RECORD_BYTES), 1, 1000.0)


def measure_half_load(broker: Broker, options: Options) -> Samples:
    """Send 16 KB batches at half the highest rate at which Kafka serves one such connection."""
    return _measure_load(broker, options, Load.of(BATCH_BYTES, RECORD_BYTES), PARTITIONS, options.rate)


def _measure_load(broker: Broker, options: Options, load: Load, partitions: int, rate: float) -> Samples:
    requests = options.count(int(rate * SECONDS))
    with a_topic(broker, partitions) as topic, Usage(broker) as usage:
        latencies = run_pace(Pace(broker.port, topic, partitions, load, rate, requests))
    figures = usage.samples(requests * load.records, requests * len(load.batch), requests / rate)
    return {**figures, **latencies.samples()}


def calibrate_rate(kafka: Broker, options: Options) -> float:
    """Return half the number of requests a second that Kafka serves on one connection with five in flight."""
    load, requests = Load.of(), options.count(CALIBRATION_REQUESTS)
    with a_topic(kafka, 1) as topic:
        begin = time.monotonic()
        produce(kafka.port, topic, load, partitions=1, requests=requests, connections=1)
        return requests / (time.monotonic() - begin) / 2


ROWS = [
    Row(
        "latency-1000",
        "Latency at 1,000 records a second",
        "One 100-byte record a request, acks=1, one partition; a consumer long-polls beside the producer.",
        measure_thousand,
        GOALS,
    ),
    Row(
        "latency-half-load",
        "Latency at half load",
        "One 16 KB batch a request, six partitions in turn, at half the highest rate at which Kafka serves such a client.",
        measure_half_load,
        GOALS,
        calibrate=calibrate_rate,
    ),
]
