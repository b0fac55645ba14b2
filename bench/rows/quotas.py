"""Quotas: what they cost when there are many, how exact they are, and what a throttled client costs the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.load import PRODUCE_VERSION, RECORD_BYTES, Load, check
from bench.paced import Pace, run_pace
from bench.row import Goal, Options, Row, Samples
from bench.rows.produce import REQUESTS, run_load
from bench.topics import a_topic
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kafkacompat.wire.apis.produce import ProduceResponse

ENTITIES = 10_000
PORTION = 1000
LOAD_CLIENT = "raw-client"
"""The client id of the raw load client."""
NO_BOUND = 1e15
QUOTA = 1_000_000.0
THROTTLED_SECONDS = 22.5
"""Two spans of Kafka's eleven windows. A client starts with a burst; after this time its rate has made up for it."""
RATE = 500.0


def set_quotas(broker: Broker, rates: dict[str, float | None], key: str = "producer_byte_rate") -> None:
    """Set a quota of these client ids, or remove it."""
    names = list(rates)
    with RawClient(broker.port) as client:
        for start in range(0, len(names), PORTION):
            entries = [
                EntryData(
                    entity=[EntityData(entity_type="client-id", entity_name=name)],
                    ops=[OpData(key=key, value=rates[name] or 0.0, remove=rates[name] is None)],
                )
                for name in names[start : start + PORTION]
            ]
            answer = client.call(AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 1)
            assert not any(entry.error_code for entry in answer.entries)
        # Kafka answers before the quotas are in effect.
        until(lambda: _has_quotas(client, rates))


def _has_quotas(client: RawClient, rates: dict[str, float | None]) -> bool:
    described = client.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, 1)
    known = {entry.entity[0].entity_name for entry in described.entries or []}
    return all((name in known) == (rate is not None) for name, rate in rates.items())


@contextmanager
def many_quotas(broker: Broker) -> Iterator[None]:
    """Have quotas of 10,000 client ids during the block; one of them is the load's, which it does not reach."""
    names = [LOAD_CLIENT, *(f"tenant-{number:05}" for number in range(ENTITIES - 1))]
    set_quotas(broker, dict.fromkeys(names, NO_BOUND))
    try:
        yield
    finally:
        set_quotas(broker, dict.fromkeys(names))


def measure_entities(broker: Broker, options: Options) -> Samples:
    """Run the raw produce load without quotas, and with 10,000."""
    without = run_load(broker, options.count(REQUESTS))
    with many_quotas(broker):
        beside = run_load(broker, options.count(REQUESTS))
    return {
        "without quotas: records/s": without["records/s"],
        "with 10,000 quotas: records/s": beside["records/s"],
        "ratio": beside["records/s"] / without["records/s"],
        "resident MB": beside["resident MB"],
    }


class ThrottledProducer:
    """A client that produces for a while as fast as its quota allows, a hundredth of a second's bytes in each request."""

    def __init__(self, broker: Broker, topic: str, seconds: float) -> None:
        self._port = broker.port
        self._topic = topic
        self._seconds = seconds
        self._thread = threading.Thread(target=self._run)
        self.rate = 0.0
        self.throttled_ms = 0

    def __enter__(self) -> ThrottledProducer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        load = Load.of(int(QUOTA / 100))
        with RawClient(self._port, client_id="throttled", timeout_seconds=60) as client:
            request = produce_request(self._topic, {0: load.batch}, acks=1)
            used_bytes, begun, elapsed = 0, time.monotonic(), 0.0
            while elapsed < self._seconds:
                used_bytes += len(load.batch)
                client.send(request, PRODUCE_VERSION)
                answer = client.receive(ProduceResponse, PRODUCE_VERSION)
                check(answer)
                self.throttled_ms += answer.throttle_time_ms
                # The bytes of the last request have the time that the client is muted for.
                elapsed = time.monotonic() - begun + answer.throttle_time_ms / 1000
        self.rate = used_bytes / elapsed


def measure_throttled(broker: Broker, options: Options) -> Samples:
    """Measure a throttled producer's rate, and the latency of another client with and without it."""
    seconds = THROTTLED_SECONDS * options.scale
    set_quotas(broker, {"throttled": QUOTA})
    try:
        alone = _run_other(broker, seconds / 4)
        with a_topic(broker, 1) as topic, ThrottledProducer(broker, topic, seconds) as throttled:
            beside = _run_other(broker, seconds)
    finally:
        set_quotas(broker, {"throttled": None})
    return {
        "rate / quota": throttled.rate / QUOTA,
        "throttle time s": throttled.throttled_ms / 1000,
        "other client alone: produce p50 us": alone["produce p50 us"],
        "other client alone: produce p99 us": alone["produce p99 us"],
        "other client beside: produce p50 us": beside["produce p50 us"],
        "other client beside: produce p99 us": beside["produce p99 us"],
    }


def _run_other(broker: Broker, seconds: float) -> Samples:
    load = Load.of(RECORD_BYTES, RECORD_BYTES)
    with a_topic(broker, 1) as topic:
        return run_pace(Pace(broker.port, topic, 1, load, RATE, max(1, int(RATE * seconds)))).samples()


ROWS = [
    Row(
        "quotas-entities",
        "Raw produce with 10,000 quotas",
        "The load of raw produce without quotas, and with quotas of 10,000 client ids; the load's own is one of them, and is not reached.",
        measure_entities,
        [Goal("ratio", 0.95, at_least=True, is_ratio=False)],
    ),
    Row(
        "quotas-throttled",
        "A throttled producer",
        "One client with producer_byte_rate=1000000 sends 10 KB requests as fast as it may, for two spans of eleven windows; "
        "another sends 500 records a second meanwhile.",
        measure_throttled,
        [
            Goal("rate / quota", 0.95, at_least=True, is_ratio=False),
            Goal("rate / quota", 1.05, at_least=False, is_ratio=False),
        ],
    ),
]
