"""Raw produce with /metrics and without: what measuring every request costs."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from bench.row import RECORDS, Goal, Options, Row, Samples
from bench.rows.produce import REQUESTS, run_load
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.ports import free_port

PASSES = 10
SCRAPE_INTERVAL_S = 5.0
CPU = "broker CPU s per million records"
SHARE = "share of the throughput without"


def measure(broker: Broker, options: Options) -> Samples:
    """Send 800 MB to the broker and to another one that is scraped every five seconds, in turn; medians."""
    http_port = free_port()
    properties = {**broker.properties, "kafkacompat.http.listener": f"127.0.0.1:{http_port}"}
    without: list[Samples] = []
    measured: list[Samples] = []
    folder = broker.folder.with_name(f"{broker.folder.name}-metrics")
    with KafkacompatBroker(folder, properties) as other, scraping(http_port) as sizes:
        for number in range(PASSES):
            for node in (broker, other) if number % 2 else (other, broker):
                (without if node is broker else measured).append(run_load(node, options.count(REQUESTS)))
    assert sizes, "nothing was scraped"
    return {
        "MB/s without": _find_median(without, "MB/s"),
        "MB/s with": _find_median(measured, "MB/s"),
        SHARE: median(mine["MB/s"] / theirs["MB/s"] for mine, theirs in zip(measured, without, strict=True)),
        f"{CPU} without": _find_median(without, CPU),
        f"{CPU} with": _find_median(measured, CPU),
        "KB a scrape": median(sizes) / 1000,
    }


def _find_median(runs: Sequence[Samples], metric: str) -> float:
    return median(run[metric] for run in runs)


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
