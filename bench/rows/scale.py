"""What a broker holds must not slow it down: very many partitions, and very much stored."""

from __future__ import annotations

import itertools
import multiprocessing
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.load import PRODUCE_VERSION, Load, check, fetch, produce
from bench.row import RECORDS, Goal, Options, Row, Samples
from bench.topics import a_topic, create_topic, record_count
from compat_tests.brokers import Broker, answers_api_versions
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import pause
from kafkacompat.wire.apis.produce import ProduceResponse

TOPICS = 100
PARTITIONS = 100
AT_ONCE = 6
SPREAD_REQUESTS = 8000
IN_FLIGHT = 5
SETTLING_SECONDS = 2
PING_SECONDS = 0.005

STORED_REQUESTS = 4000
SEGMENT_BYTES = 10 << 20

_CONTEXT = multiprocessing.get_context("spawn")


def ask_again_and_again(port: int, longest: Any, over: Any) -> None:
    """Note the longest that a small answer took, in seconds (a process of its own: a load beside it would hold it up)."""
    while not over.wait(PING_SECONDS):
        begun = time.monotonic()
        if answers_api_versions(port, timeout_seconds=30):
            longest.value = max(longest.value, time.monotonic() - begun)


@contextmanager
def watched(broker: Broker) -> Iterator[Any]:
    """Watch a broker during the block; ``value`` is the longest that it kept a client waiting, in seconds."""
    longest, over = _CONTEXT.Value("d", 0.0), _CONTEXT.Event()
    asking = _CONTEXT.Process(target=ask_again_and_again, args=(broker.port, longest, over), daemon=True)
    asking.start()
    try:
        yield longest
    finally:
        over.set()
        asking.join()


def spread(port: int, topics: Sequence[str], partitions: int, load: Load, requests: int) -> float:
    """Send requests of six batches, each to the next six partitions of the next topic; return the batches a second."""
    groups = [range(start, min(start + AT_ONCE, partitions)) for start in range(0, partitions, AT_ONCE)]
    sent = 0
    with RawClient(port, timeout_seconds=120) as client:
        frames = []
        for group, topic in itertools.product(groups, topics):
            payload = client.encode(produce_request(topic, dict.fromkeys(group, load.batch), acks=1), PRODUCE_VERSION)
            frames.append((struct.pack(">i", len(payload)) + payload, len(group)))
        begun, endless = time.monotonic(), itertools.cycle(frames)
        for number in range(requests + IN_FLIGHT):
            if number < requests:
                frame, batches = next(endless)
                client.socket.sendall(frame)
                sent += batches
            if number >= IN_FLIGHT:
                check(client.receive(ProduceResponse, PRODUCE_VERSION))
        return sent / (time.monotonic() - begun)


def measure_partitions(broker: Broker, options: Options) -> Samples:
    """Make the partitions, start over them, and spread a load over all of them."""
    load, requests = Load.of(), options.count(SPREAD_REQUESTS)
    with broker, watched(broker) as making:
        topics = [create_topic(broker, PARTITIONS) for _ in range(options.count(TOPICS))]
    seconds = broker.start()
    try:
        pause(SETTLING_SECONDS)
        resident_bytes = broker.resident_bytes()
        with watched(broker) as pauses:
            few = spread(broker.port, topics[:1], AT_ONCE, load, requests)
            all_of_them = spread(broker.port, topics, PARTITIONS, load, requests)
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


def _rates(broker: Broker, options: Options) -> tuple[float, float]:
    """Bytes a second, produced and read back at once."""
    load, requests = Load.of(), options.count(STORED_REQUESTS)
    with a_topic(broker, AT_ONCE) as topic:
        begun = time.monotonic()
        records = produce(broker.port, topic, load, partitions=AT_ONCE, requests=requests)
        produced = time.monotonic()
        read_bytes = fetch(broker.port, topic, load, partitions=AT_ONCE, until_records=records)
        read = time.monotonic()
    return read_bytes / (produced - begun), read_bytes / (read - produced)


def measure_stored(broker: Broker, options: Options) -> Samples:
    """Produce and fetch with nothing stored and with much, and start over that."""
    load = Load.of(262_144, 10_000)
    requests = max(1, int(options.stored_gigabytes * 1e9 / AT_ONCE / len(load.batch)))
    with broker:
        _rates(broker, options)  # warm
        empty = _rates(broker, options)
        topic = create_topic(broker, AT_ONCE, segment_bytes=str(SEGMENT_BYTES))
        records = produce(broker.port, topic, load, partitions=AT_ONCE, requests=requests)
        full = _rates(broker, options)
    seconds = broker.start()
    try:
        assert record_count(broker, topic, AT_ONCE) == records
    finally:
        broker.stop(timeout_seconds=300)
    return {
        "stored GB": requests * AT_ONCE * len(load.batch) / 1e9,
        "produce MB/s, empty": empty[0] / 1e6,
        "produce, full/empty": full[0] / empty[0],
        "fetch MB/s, empty": empty[1] / 1e6,
        "fetch, full/empty": full[1] / empty[1],
        "seconds to first answer": seconds,
    }


ROWS = [
    Row(
        "partitions",
        "10,000 partitions",
        "100 topics of 100 partitions: the start over them, the memory then held, 16 KB batches to six partitions and to all, "
        "six a request on one connection with five in flight. Beside it another client asks for ApiVersions all the time.",
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
        "Raw produce and raw fetch of what was just produced, with nothing stored and with 20 GB in segments of 10 MiB; then a "
        "start after a clean stop.",
        measure_stored,
        [
            Goal("produce, full/empty", 0.95, at_least=True, is_ratio=False),
            Goal("fetch, full/empty", 0.95, at_least=True, is_ratio=False),
            Goal("seconds to first answer", 2, at_least=False, is_ratio=False),
        ],
        contenders=(RECORDS,),
        fresh=True,
    ),
]
