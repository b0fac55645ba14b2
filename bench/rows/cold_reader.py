"""Latency beside a consumer that reads from the disk, which must not delay clients that use the page cache."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.load import RECORD_BYTES, Load, fetch, produce
from bench.paced import Latencies, Pace, find_percentile, run_pace
from bench.row import Goal, Options, Row, Samples
from bench.topics import a_topic
from compat_tests.brokers import Broker

PARTITIONS = 4
BATCH_BYTES = 262_144
RATE = 1000.0
SECONDS = 10

_CONTEXT = multiprocessing.get_context("spawn")


def drop_from_page_cache(broker: Broker, topic: str) -> None:
    """Write a topic's files to the disk and drop them from the page cache."""
    for path in sorted(broker.data_folder.glob(f"{topic}-*/*.log")):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def read_again_and_again(port: int, topic: str, load: Load, records: int, started: Any) -> None:
    """Read the topic to its end (a process of its own)."""
    started.set()
    fetch(port, topic, load, partitions=PARTITIONS, until_records=records)


@contextmanager
def cold_reader(broker: Broker, topic: str, load: Load, records: int) -> Iterator[Any]:
    """Let a consumer read data that is not in the page cache during the block; yields its process."""
    drop_from_page_cache(broker, topic)
    started = _CONTEXT.Event()
    arguments = (broker.port, topic, load, records, started)
    reader = _CONTEXT.Process(target=read_again_and_again, args=arguments, daemon=True)
    reader.start()
    started.wait()
    try:
        yield reader
    finally:
        reader.terminate()
        reader.join()


def run_paced_load(broker: Broker, seconds: float) -> Latencies:
    """Produce and tail-fetch 1,000 records a second for a while."""
    with a_topic(broker, 1) as topic:
        load = Load.of(RECORD_BYTES, RECORD_BYTES)
        return run_pace(Pace(broker.port, topic, 1, load, RATE, int(RATE * seconds)))


def measure(broker: Broker, options: Options) -> Samples:
    """Compare the latency of an idle broker with that beside the cold reader."""
    load = Load.of(BATCH_BYTES, 10_000)
    requests = max(1, int(options.cold_gigabytes * 1e9 / PARTITIONS / len(load.batch)))
    with a_topic(broker, PARTITIONS) as topic:
        records = produce(broker.port, topic, load, partitions=PARTITIONS, requests=requests)
        idle = run_paced_load(broker, SECONDS * options.scale)
        beside: list[Latencies] = []
        with cold_reader(broker, topic, load, records) as reader:
            while not beside or reader.is_alive():
                beside.append(run_paced_load(broker, 1))
    return _compare_latencies(idle, beside)


def _compare_latencies(idle: Latencies, beside: list[Latencies]) -> Samples:
    figures: Samples = {}
    for name in ("acknowledged", "fetched"):
        label = {"acknowledged": "produce", "fetched": "tail fetch"}[name]
        quiet = find_percentile(getattr(idle, name), 0.99)
        busy = find_percentile(sorted(value for run_ in beside for value in getattr(run_, name)), 0.99)
        figures |= {
            f"{label} p99 us, idle": quiet,
            f"{label} p99 us, beside": busy,
            f"{label} p99, beside/idle": busy / quiet,
        }
    return figures


ROWS = [
    Row(
        "cold-reader",
        "Latency beside a cold reader",
        "1,000 records a second, as in the row Latency at 1,000 records a second: first alone (*idle*), then while another "
        "consumer reads a topic that was dropped from the page cache (*beside*).",
        measure,
        [
            Goal("produce p99, beside/idle", 2.0, at_least=False, is_ratio=False),
            Goal("tail fetch p99, beside/idle", 2.0, at_least=False, is_ratio=False),
        ],
    )
]
