"""Raw fetch: a client reads the batches of the produce row and discards them."""

from __future__ import annotations

from bench.load import Load, fetch, produce
from bench.row import Options, Row, Samples, throughput_goals
from bench.rows.produce import PARTITIONS, REQUESTS
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker

PASSES = 5


def measure(broker: Broker, options: Options) -> Samples:
    """Read 800 MB five times over one connection, from the page cache."""
    load = Load.of()
    with a_topic(broker, PARTITIONS) as topic:
        records = produce(broker.port, topic, load, partitions=PARTITIONS, requests=options.count(REQUESTS))
        with Usage(broker) as usage:
            size_bytes = sum(
                fetch(broker.port, topic, load, partitions=PARTITIONS, until_records=records) for _ in range(PASSES)
            )
    return usage.samples(PASSES * records, size_bytes)


ROWS = [
    Row(
        "fetch",
        "Raw fetch",
        "The data of the produce row, read over one connection, 1 MiB a partition and request.",
        measure,
        throughput_goals(1.0, 0.5),
    )
]
