"""The latency client: sends by the clock, and records when each batch was acknowledged and when it was fetched.

Producer and consumer run as separate processes, so that neither waits for the other's interpreter. Times are the system's
monotonic clock, which all processes share. A batch's latency counts from the moment at which it was due, not from its sending:
otherwise a broker that delays the client would hide its delay.
"""

from __future__ import annotations

import multiprocessing
import select
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from bench.load import PRODUCE_VERSION, Load, check, produce_frame, receive_into, records_size
from bench.row import Samples
from compat_tests.raw_client import RawClient, fetch_request
from kafkacompat.wire.apis.produce import ProduceResponse

_CONTEXT = multiprocessing.get_context("spawn")
FETCH_VERSION = 11


@dataclass(frozen=True)
class Pace:
    """One load: ``rate`` requests a second, each with one batch, to the partitions in turn; the broker leads all of them."""

    port: int
    topic: str
    partitions: int
    load: Load
    rate: float
    requests: int
    acks: int = 1


@dataclass(frozen=True)
class Latencies:
    """Sorted microseconds from a batch's due time to its acknowledgement, and to its fetch."""

    acknowledged: list[float]
    fetched: list[float]

    def samples(self) -> Samples:
        """Return the usual percentiles."""
        return {
            f"{kind} {name} us": find_percentile(values, share)
            for kind, values in (("produce", self.acknowledged), ("end-to-end", self.fetched))
            for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
        }


def find_percentile(values: list[float], share: float) -> float:
    """Return a percentile of sorted values, by nearest rank."""
    return values[min(len(values) - 1, int(share * len(values)))]


def run_pace(pace: Pace) -> Latencies:
    """Run producer and consumer to the end. Raises AssertionError if either fails."""
    consumer, consumer_end = _start_process(_run_consumer, pace)
    assert consumer_end.recv() == "ready"
    producer, producer_end = _start_process(_run_producer, pace)
    due, acknowledged = _receive_result(producer, producer_end)
    fetched: dict[int, list[float]] = _receive_result(consumer, consumer_end)
    arrivals = (
        (number * pace.partitions + partition, when)
        for partition, times in fetched.items()
        for number, when in enumerate(times)
    )
    return Latencies(_measure_delays(enumerate(acknowledged), due), _measure_delays(arrivals, due))


@contextmanager
def produce_meanwhile(pace: Pace) -> Iterator[list[float]]:
    """Run the producer alone during the block, or until its requests are sent; then fill the list with its sorted microseconds."""
    microseconds: list[float] = []
    producer, end = _start_process(_run_producer, pace)
    yield microseconds
    end.send("stop")
    due, acknowledged = _receive_result(producer, end)
    microseconds += _measure_delays(enumerate(acknowledged), due)


def _measure_delays(times: Iterable[tuple[int, float]], due: list[float]) -> list[float]:
    return sorted((when - due[number]) * 1e6 for number, when in times)


def _start_process(target: Any, pace: Pace) -> tuple[Any, Connection]:
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=target, args=(pace, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _receive_result(process: Any, end: Connection) -> Any:
    try:
        result = end.recv()
    except EOFError:
        raise AssertionError("a process of the latency client failed; its traceback is above") from None
    process.join()
    return result


def _run_producer(pace: Pace, parent: Connection) -> None:
    """Send each batch when it is due, until the parent says something; read acknowledgements in between."""
    due, acknowledged = [], []
    with RawClient(pace.port) as client:
        frames = [
            produce_frame(client, pace.topic, {partition: pace.load.batch}, pace.acks)
            for partition in range(pace.partitions)
        ]
        begin = time.monotonic() + 0.2
        for number in range(pace.requests):
            if parent.poll():
                break
            due.append(begin + number / pace.rate)
            while (left := due[number] - time.monotonic()) > 0:
                if _is_readable(client, left):
                    acknowledged.append(_await_acknowledgement(client))
            client.socket.sendall(frames[number % pace.partitions])
        while len(acknowledged) < len(due):
            acknowledged.append(_await_acknowledgement(client))
    parent.send((due, acknowledged))


def _is_readable(client: RawClient, timeout_seconds: float) -> bool:
    return bool(select.select([client.socket], [], [], timeout_seconds)[0])


def _await_acknowledgement(client: RawClient) -> float:
    answer = client.receive(ProduceResponse, PRODUCE_VERSION)
    now = time.monotonic()
    check(answer)
    return now


def _run_consumer(pace: Pace, parent: Connection) -> None:
    """Long-poll all partitions; record when each batch arrived."""
    arrived: dict[int, list[float]] = {number: [] for number in range(pace.partitions)}
    left = pace.requests
    buffer = bytearray(64 << 20)
    with RawClient(pace.port) as client:
        parent.send("ready")
        while left:
            offsets = {number: len(times) * pace.load.records for number, times in arrived.items()}
            client.send(fetch_request(pace.topic, offsets), FETCH_VERSION)
            answer = receive_into(client.socket, buffer)
            now = time.monotonic()
            for part in answer.responses[0].partitions:
                assert part.error_code == 0, part.error_code
                whole = records_size(part) // len(pace.load.batch)
                arrived[part.partition_index] += [now] * whole
                left -= whole
    parent.send(arrived)
