"""Scale: the number of partitions, stored bytes and producers must not slow a broker down."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from bench.load import Load, fetch, produce, produce_frame, send_all
from bench.row import RECORDS, Goal, Options, Row, Samples
from bench.topics import a_topic, create_topic, record_count
from compat_tests import batches
from compat_tests.brokers import Broker, answers_api_versions
from compat_tests.raw_client import RawClient
from compat_tests.waiting import pause

TOPICS = 100
PARTITIONS = 100
AT_ONCE = 6
SPREAD_REQUESTS = 8000
SETTLING_SECONDS = 2
PING_SECONDS = 0.005

STORED_REQUESTS = 4000
TURNS = 5
SEGMENT_BYTES = 10 << 20

PRODUCERS = 10_000

_CONTEXT = multiprocessing.get_context("spawn")


def ask_again_and_again(port: int, longest: Any, over: Any) -> None:
    """Record the longest wait for a small response, in seconds (a process of its own, so that the load does not delay it)."""
    while not over.wait(PING_SECONDS):
        begun = time.monotonic()
        if answers_api_versions(port, timeout_seconds=30):
            longest.value = max(longest.value, time.monotonic() - begun)


@contextmanager
def watch_broker(broker: Broker) -> Iterator[Any]:
    """Watch a broker during the block; ``value`` is a client's longest wait for a response, in seconds."""
    longest, over = _CONTEXT.Value("d", 0.0), _CONTEXT.Event()
    asking = _CONTEXT.Process(target=ask_again_and_again, args=(broker.port, longest, over), daemon=True)
    asking.start()
    try:
        yield longest
    finally:
        over.set()
        asking.join()


def spread_batches(port: int, topics: Sequence[str], partitions: int, load: Load, requests: int) -> float:
    """Send requests of six batches, each to the next six partitions of the next topic; return the batches a second."""
    groups = [range(start, min(start + AT_ONCE, partitions)) for start in range(0, partitions, AT_ONCE)]
    with RawClient(port, timeout_seconds=120) as client:
        frames = [
            (produce_frame(client, topic, dict.fromkeys(group, load.batch)), len(group))
            for group, topic in itertools.product(groups, topics)
        ]
        sending = list(itertools.islice(itertools.cycle(frames), requests))
        begun = time.monotonic()
        send_all(client, (frame for frame, _ in sending))
        return sum(count for _, count in sending) / (time.monotonic() - begun)


def measure_partitions(broker: Broker, options: Options) -> Samples:
    """Create the partitions, restart the broker, and spread a load over all of them."""
    load, requests = Load.of(), options.count(SPREAD_REQUESTS)
    with broker, watch_broker(broker) as making:
        topics = [create_topic(broker, PARTITIONS) for _ in range(options.count(TOPICS))]
    seconds = broker.start()
    try:
        pause(SETTLING_SECONDS)
        resident_bytes = broker.resident_bytes()
        with watch_broker(broker) as pauses:
            few = spread_batches(broker.port, topics[:1], AT_ONCE, load, requests)
            all_of_them = spread_batches(broker.port, topics, PARTITIONS, load, requests)
    finally:
        broker.stop(timeout_seconds=300)
    return {
        "partitions": len(topics) * PARTITIONS,
        "seconds to first answer": seconds,
        "resident MB": resident_bytes / 1e6,
        "batches/s over 6": few,
        "batches/s over all": all_of_them,
        "over all/over 6": all_of_them / few,
        "longest answer ms, making": making.value * 1e3,
        "longest answer ms, producing": pauses.value * 1e3,
    }


def _measure_rates(broker: Broker, options: Options) -> tuple[float, float]:
    """Return the bytes a second of producing, and of fetching the same records at once."""
    load, requests = Load.of(), options.count(STORED_REQUESTS)
    with a_topic(broker, AT_ONCE) as topic:
        begun = time.monotonic()
        records = produce(broker.port, topic, load, partitions=AT_ONCE, requests=requests)
        produced = time.monotonic()
        read_bytes = fetch(broker.port, topic, load, partitions=AT_ONCE, until_records=records)
        read = time.monotonic()
    return read_bytes / (produced - begun), read_bytes / (read - produced)


def measure_stored(broker: Broker, options: Options) -> Samples:
    """Produce and fetch on a full and on an empty broker, in turn; then restart the full one."""
    load = Load.of(262_144, 10_000)
    requests = max(1, int(options.stored_gigabytes * 1e9 / AT_ONCE / len(load.batch)))
    with broker, type(broker)(broker.folder / "empty", broker.properties) as empty:
        topic = create_topic(broker, AT_ONCE, segment_bytes=str(SEGMENT_BYTES))
        records = produce(broker.port, topic, load, partitions=AT_ONCE, requests=requests)
        for warmed_broker in (empty, broker):
            _measure_rates(warmed_broker, options)  # warm
        os.sync()
        turns = [(_measure_rates(empty, options), _measure_rates(broker, options)) for _ in range(TURNS)]
    seconds = broker.start()
    try:
        assert record_count(broker, topic, AT_ONCE) == records
    finally:
        broker.stop(timeout_seconds=300)
    return {
        "stored GB": requests * AT_ONCE * len(load.batch) / 1e9,
        "produce MB/s, empty": median(bare[0] for bare, _ in turns) / 1e6,
        "produce, full/empty": median(full[0] / bare[0] for bare, full in turns),
        "fetch MB/s, empty": median(bare[1] for bare, _ in turns) / 1e6,
        "fetch, full/empty": median(full[1] / bare[1] for bare, full in turns),
        "seconds to first answer": seconds,
    }


def introduce_producers(port: int, topic: str, partitions: int, producers: int) -> None:
    """Let *producers* idempotent producers send a batch to each partition, all batches of a producer in one request."""
    with RawClient(port, timeout_seconds=120) as client:
        send_all(
            client,
            (
                produce_frame(client, topic, dict.fromkeys(range(partitions), first_batch(producer_id)))
                for producer_id in range(producers)
            ),
        )


def first_batch(producer_id: int) -> bytes:
    """Return a producer's first batch: one small record."""
    return batches.build([b"v"], producer_id=producer_id, producer_epoch=0, base_sequence=0)


def measure_producers(broker: Broker, options: Options) -> Samples:
    """Measure produce before and after many idempotent producers, one after another, sent a record to every partition."""
    load, requests, producers = Load.of(), options.count(STORED_REQUESTS), options.count(PRODUCERS)
    with broker:
        topic = create_topic(broker, PARTITIONS)

        def rate() -> float:
            begun = time.monotonic()
            records = produce(broker.port, topic, load, partitions=AT_ONCE, requests=requests)
            return records / (time.monotonic() - begun)

        rate()  # warm
        without, resident_bytes = rate(), broker.resident_bytes()
        begun = time.monotonic()
        introduce_producers(broker.port, topic, PARTITIONS, producers)
        seconds = time.monotonic() - begun
        more_bytes = broker.resident_bytes() - resident_bytes
        beside = rate()
    entries = producers * PARTITIONS
    return {
        "entries": entries,
        "entries/s, new": entries / seconds,
        "resident MB more": more_bytes / 1e6,
        "resident bytes an entry": more_bytes / entries,
        "records/s without": without,
        "records/s with": beside,
        "with/without": beside / without,
    }


ROWS = [
    Row(
        "partitions",
        "10,000 partitions",
        "100 topics of 100 partitions: the time of a start over them, the memory after it, and 16 KB batches to six partitions "
        "and to all of them, six batches a request on one connection with five requests in flight. Meanwhile another client sends "
        "one ApiVersions request after the other; the longest wait for its response is given while partitions are created and "
        "while batches are produced.",
        measure_partitions,
        [
            Goal("seconds to first answer", 10, at_least=False, is_ratio=False),
            Goal("resident MB", 500, at_least=False, is_ratio=False),
            Goal("over all/over 6", 0.5, at_least=True, is_ratio=False),
            Goal("longest answer ms, producing", 50, at_least=False, is_ratio=False),
        ],
        contenders=(RECORDS,),
        fresh=True,
    ),
    Row(
        "stored",
        "20 GB stored",
        "Raw produce, and raw fetch of the same records, on a broker with 20 GB in segments of 10 MiB and on an empty one, in "
        "turn; the figures are medians of five turns. Then the time of a start after a clean stop.",
        measure_stored,
        [
            Goal("produce, full/empty", 0.95, at_least=True, is_ratio=False),
            Goal("fetch, full/empty", 0.95, at_least=True, is_ratio=False),
            Goal("seconds to first answer", 2, at_least=False, is_ratio=False),
        ],
        contenders=(RECORDS,),
        fresh=True,
    ),
    Row(
        "producers",
        "1,000,000 idempotent producers to remember",
        "10,000 idempotent producers send one small record to each of 100 partitions, one request a producer, five in flight: "
        "1,000,000 entries of a partition and a producer id. The row measures the memory of these entries, and raw produce of "
        "16 KB batches to six of these partitions before and after.",
        measure_producers,
        [
            Goal("resident MB more", 400, at_least=False, is_ratio=False),
            Goal("with/without", 0.8, at_least=True, is_ratio=False),
        ],
        fresh=True,
    ),
]
