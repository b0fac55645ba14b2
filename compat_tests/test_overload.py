"""Hundreds of clients that send without end, or never read: memory stays bounded and other clients are served."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.conftest import MakeBroker
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.test_bad_input import create_topic, stored_values
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.apis.produce import ProduceResponse

CONNECTIONS = 500
GROWTH_LIMIT_BYTES = 400_000_000
FRAME_BYTES = 100_000_000
SENT_EACH_BYTES = 50_000_000
CHUNK = bytes(1 << 18)


@pytest.fixture(scope="module", autouse=True)
def _many_files() -> Iterator[None]:
    """Let this process hold as many connections as the tests open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * CONNECTIONS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def overloaded(make_broker: MakeBroker, broker_kind: str) -> Broker:
    """Return a broker of its own, with room for the connections."""
    if broker_kind == "kafka":
        pytest.skip("Kafka's memory is its JVM's, and it reserves what a frame claims")
    return make_broker()


class Peak:
    """The largest memory of a broker, beyond that at its start."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.base = broker.resident_bytes()
        self.growth = 0

    def look(self) -> None:
        self.growth = max(self.growth, self.broker.resident_bytes() - self.base)


def assert_serves_others(broker: Broker, topic: str, *, within_seconds: float = 15) -> None:
    """Produce a record and fetch all of a topic on a new connection, in good time."""
    with RawClient(broker.port, timeout_seconds=within_seconds) as client:
        before = len(stored_values(client, topic)) if topic else 0
        answer = client.call(produce_request(topic, {0: batches.build([b"served"])}), ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert len(stored_values(client, topic)) == before + 1


def send_some(sender: Any) -> int:
    try:
        sent: int = sender.send(CHUNK)
    except BlockingIOError:
        return 0
    return sent


def fill_senders(senders: Sequence[socket.socket], peak: Peak, *, quiet_seconds: float = 2) -> int:
    """Send to all until each has sent its half or the broker takes no more; return the bytes sent."""
    left: dict[Any, int] = dict.fromkeys(senders, SENT_EACH_BYTES)
    total, last_progress = 0, time.monotonic()
    with selectors.DefaultSelector() as selector:
        for sender in senders:
            selector.register(sender, selectors.EVENT_WRITE)
        while left and time.monotonic() < last_progress + quiet_seconds:
            for key, _ in selector.select(0.1):
                sent = send_some(key.fileobj)
                if sent:
                    total, last_progress = total + sent, time.monotonic()
                left[key.fileobj] -= sent
                if left[key.fileobj] <= 0:
                    selector.unregister(key.fileobj)
                    del left[key.fileobj]
            peak.look()
    return total


def test_half_sent_frames(overloaded: Broker) -> None:
    with RawClient(overloaded.port) as client:
        create_topic(client, "others")
    assert_serves_others(overloaded, "others")
    peak = Peak(overloaded)
    with contextlib.ExitStack() as stack:
        senders = [
            stack.enter_context(socket.create_connection(("127.0.0.1", overloaded.port))) for _ in range(CONNECTIONS)
        ]
        for sender in senders:
            sender.sendall(struct.pack(">i", FRAME_BYTES))
            sender.setblocking(False)
        sent = fill_senders(senders, peak)
        assert sent > 100_000_000
        assert_serves_others(overloaded, "others")
        peak.look()
    assert_serves_others(overloaded, "others")
    peak.look()
    assert peak.growth < GROWTH_LIMIT_BYTES


def fetch_all(topic: str) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50_000_000, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )


def test_readers_that_never_read(overloaded: Broker) -> None:
    with RawClient(overloaded.port) as client:
        create_topic(client, "others")
        create_topic(client, "large")
        batch = batches.build([b"x" * 900_000])
        for _ in range(50):
            client.call(produce_request("large", {0: batch}, acks=1), ProduceResponse, 9)
    assert_serves_others(overloaded, "others")
    peak = Peak(overloaded)
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            reader = stack.enter_context(RawClient(overloaded.port))
            for _ in range(20):
                reader.send(fetch_all("large"), 11)
            peak.look()
        for _ in range(5):
            assert_serves_others(overloaded, "others")
            peak.look()
    assert_serves_others(overloaded, "others")
    peak.look()
    assert peak.growth < GROWTH_LIMIT_BYTES


def test_producers_that_never_read_their_answers(overloaded: Broker) -> None:
    """Answers pile up until the broker stops reading from such a client; then its writes block."""
    with RawClient(overloaded.port) as client:
        create_topic(client, "others")
        create_topic(client, "flood")
    peak = Peak(overloaded)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(overloaded.port)) for _ in range(50)]
        request = produce_request("flood", {0: batches.build([b"x"])}, acks=1)
        for client in clients:
            frame = client.encode(request, 9)
            client.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                for _ in range(20_000):
                    client.socket.sendall(struct.pack(">i", len(frame)) + frame)
            peak.look()
        assert_serves_others(overloaded, "others")
        peak.look()
    assert peak.growth < GROWTH_LIMIT_BYTES
