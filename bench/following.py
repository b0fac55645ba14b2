"""Clients that follow a partition's leader while brokers fail: they note when each request succeeded.

They retry every few milliseconds and try the brokers in turn, so that the figures are the cluster's and not those of a client's
backoff.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise

from bench.load import FETCH_VERSION, PRODUCE_VERSION, RECORD_BYTES, Load
from compat_tests.raw_client import ClosedError, RawClient, fetch_request, produce_request
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.apis.produce import ProduceResponse

RETRY_SECONDS = 0.005
REQUEST_SECONDS = 10
FETCH_WAIT_MS = 100


class RetryingClient(threading.Thread, ABC):
    """Sends one request after the other to the leader of partition 0; ``times`` has the moment of each success."""

    def __init__(self, ports: Mapping[int, int], topic: str) -> None:
        super().__init__(daemon=True)
        self.times: list[float] = []
        self._ports = list(ports.values())
        self._topic = topic
        self._client: RawClient | None = None
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.is_set():
            try:
                client = self._client = self._client or RawClient(self._ports[0], timeout_seconds=REQUEST_SECONDS)
                is_successful = self.request(client)
            except (ClosedError, OSError):
                is_successful = False
            if is_successful:
                self.times.append(time.monotonic())
            else:
                self._turn_away()
            pause(RETRY_SECONDS)
        self._close()

    @abstractmethod
    def request(self, client: RawClient) -> bool:
        """Send a request and return whether it succeeded; raises ClosedError and OSError."""

    def _turn_away(self) -> None:
        self._close()
        self._ports.append(self._ports.pop(0))

    def _close(self) -> None:
        if self._client is not None:
            self._client.socket.close()
            self._client = None

    def stop(self) -> None:
        """End the thread."""
        self._is_over.set()
        self.join()

    def await_success(self) -> None:
        """Return once a request that is sent from now on has succeeded twice."""
        count = len(self.times) + 2
        until(lambda: len(self.times) >= count, timeout_seconds=60)

    def first_after(self, moment: float) -> float:
        """Return the moment of the first success after *moment*."""
        return next(when for when in self.times if when > moment)

    def longest_gap(self, begun: float) -> float:
        """Return the most seconds between two successes since *begun*."""
        times = [when for when in self.times if when >= begun]
        return max(later - earlier for earlier, later in pairwise(times))


class Writer(RetryingClient):
    """Writes one record after the other with acks=all."""

    def __init__(self, ports: Mapping[int, int], topic: str) -> None:
        super().__init__(ports, topic)
        self._request = produce_request(topic, {0: Load.of(RECORD_BYTES, RECORD_BYTES).batch}, acks=-1)

    def request(self, client: RawClient) -> bool:
        answer = client.call(self._request, ProduceResponse, PRODUCE_VERSION)
        return not answer.responses[0].partition_responses[0].error_code


class Reader(RetryingClient):
    """Reads what a writer writes, from the beginning on, with long polls."""

    def __init__(self, ports: Mapping[int, int], topic: str) -> None:
        super().__init__(ports, topic)
        self._offset = 0
        self._batch_bytes = len(Load.of(RECORD_BYTES, RECORD_BYTES).batch)

    def request(self, client: RawClient) -> bool:
        request = fetch_request(self._topic, {0: self._offset}, max_wait_ms=FETCH_WAIT_MS)
        partition = client.call(request, FetchResponse, FETCH_VERSION).responses[0].partitions[0]
        if partition.error_code:
            return False
        assert partition.records is None or isinstance(partition.records, (bytes, memoryview))
        self._offset += len(partition.records or b"") // self._batch_bytes
        return True


@contextmanager
def at_work(*clients: RetryingClient) -> Iterator[None]:
    """Run the clients during the block, which begins once each has succeeded."""
    for client in clients:
        client.start()
    try:
        for client in clients:
            client.await_success()
        yield
    finally:
        for client in clients:
            client.stop()
