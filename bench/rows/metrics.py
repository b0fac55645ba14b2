"""Raw produce with /metrics and without: what measuring every request costs."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench.load import Load, produce
from bench.row import RECORDS, Goal, Options, Row, Samples
from bench.rows.produce import PARTITIONS, REQUESTS
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.ports import free_port

PASSES = 10
SCRAPE_INTERVAL_S = 5.0
SHARE = "share of the throughput without"


def measure(broker: Broker, options: Options) -> Samples:
    """Send 800 MB to the broker and to another one that is scraped every five seconds, in turn; medians."""
    http_port = free_port()
    properties = {**broker.properties, "kafkacompat.http.listener": f"127.0.0.1:{http_port}"}
    plain: list[float] = []
    measured: list[float] = []
    seconds: list[float] = []
    measured_seconds: list[float] = []
    folder = broker.folder.with_name(f"{broker.folder.name}-metrics")
    with KafkacompatBroker(folder, properties) as other, scraping(http_port) as sizes:
        for number in range(PASSES):
            for node in (broker, other) if number % 2 else (other, broker):
                rates, cpu = (plain, seconds) if node is broker else (measured, measured_seconds)
                rate, used = run_load(node, options)
                rates.append(rate)
                cpu.append(used)
    assert sizes, "nothing was scraped"
    return {
        "MB/s without": median(plain),
        "MB/s with": median(measured),
        SHARE: median(mine / theirs for mine, theirs in zip(measured, plain, strict=True)),
        "CPU s without": median(seconds),
        "CPU s with": median(measured_seconds),
        "KB a scrape": median(sizes) / 1000,
    }


def run_load(broker: Broker, options: Options) -> tuple[float, float]:
    """Return MB/s and the broker's CPU seconds."""
    load, requests = Load.of(), options.count(REQUESTS)
    size_bytes = requests * PARTITIONS * len(load.batch)
    with a_topic(broker, PARTITIONS) as topic, Usage(broker) as usage:
        produce(broker.port, topic, load, partitions=PARTITIONS, requests=requests)
    return size_bytes / usage.seconds / 1e6, usage.cpu_seconds


@contextmanager
def scraping(port: int) -> Iterator[list[int]]:
    """Scrape every five seconds, and yield the list of the sizes in bytes."""
    sizes: list[int] = []
    over = threading.Event()

    def scrape() -> None:
        while not over.wait(SCRAPE_INTERVAL_S):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                sizes.append(len(answer.read()))

    scraper = threading.Thread(target=scrape)
    scraper.start()
    began_s = time.monotonic()
    try:
        yield sizes
        while not sizes and time.monotonic() < began_s + 10:
            over.wait(0.1)
    finally:
        over.set()
        scraper.join()


ROWS = [
    Row(
        "metrics",
        "Raw produce with metrics and without",
        "The load of raw produce on two brokers in turn; one serves /metrics and is scraped every five seconds.",
        measure,
        [Goal(SHARE, 0.97, at_least=True, is_ratio=False)],
        contenders=(RECORDS,),
    ),
]
