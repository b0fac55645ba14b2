"""Raw produce: requests encoded once, so that only the broker's work is timed."""

from __future__ import annotations

from ssl import SSLContext

from bench.load import Load, produce
from bench.row import HEADER, KAFKA, RECORDS, Goal, Options, Row, Samples, throughput_goals
from bench.topics import a_topic, record_count
from bench.usage import Usage
from compat_tests.brokers import Broker

PARTITIONS = 6
REQUESTS = 8000


def run_load(broker: Broker, requests: int, port: int | None = None, tls: SSLContext | None = None) -> Samples:
    """Send *requests* of six batches, to the listener at *port* by TLS if given, and check the number of records in the log."""
    load = Load.of()
    with a_topic(broker, PARTITIONS) as topic:
        with Usage(broker) as usage:
            records = produce(port or broker.port, topic, load, partitions=PARTITIONS, requests=requests, tls=tls)
        assert record_count(broker, topic, PARTITIONS) == records
    return usage.samples(records, requests * PARTITIONS * len(load.batch))


def measure(broker: Broker, options: Options) -> Samples:
    """Send 800 MB of batches."""
    return run_load(broker, options.count(REQUESTS))


def measure_first(broker: Broker, options: Options) -> Samples:
    """Run the same load on a broker that has just started."""
    with broker:
        return measure(broker, options)


ROWS = [
    Row(
        "produce",
        "Raw produce",
        "Pre-encoded requests of six 16 KB batches (100-byte records), one for each partition; acks=1; "
        "three connections with five requests in flight each.",
        measure,
        [
            *throughput_goals(1.2, 0.55, HEADER),
            *throughput_goals(1.0, 0.7, RECORDS),
            Goal("resident MB", 200, at_least=False, is_ratio=False),
        ],
        contenders=(HEADER, RECORDS, KAFKA),
    ),
    Row(
        "first-produce",
        "Raw produce, first load of a new broker",
        "The same load once, on a broker that has just started, so that a JVM has not compiled its code yet.",
        measure_first,
        [],
        contenders=(HEADER, RECORDS, KAFKA),
        fresh=True,
    ),
]
