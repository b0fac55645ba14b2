"""Group commit: producers whose batches are acknowledged once they are on the disk, compared with the disk alone."""

from __future__ import annotations

import itertools
import os
import selectors
import socket
import struct
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.load import BATCH_BYTES, PRODUCE_VERSION, Load, check
from bench.row import HEADER, KAFKA, RECORDS, Goal, Options, Row, Samples
from bench.topics import a_topic, record_count
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient, produce_request
from kafkacompat.wire.apis.produce import ProduceResponse

PRODUCERS = 64
SECONDS = 8
SIZE = struct.Struct(">i")


def measure(partitions: int, batch_bytes: int, broker: Broker, options: Options) -> Samples:
    """Let every producer send one request after the other, each after the previous acknowledgement."""
    load = Load.of(batch_bytes)
    seconds = max(1.0, SECONDS * options.scale)
    with a_topic(broker, partitions) as topic:
        producers = [Producer(broker.port, topic, number, partitions, load) for number in range(PRODUCERS)]
        with Usage(broker) as usage:
            batches = run_producers(producers, seconds)
        # Each producer sent one request before the measurement.
        assert record_count(broker, topic, partitions) == (batches + PRODUCERS) * load.records
    together, apart = (
        bare_batches(broker.folder, load.batch, partitions, batch_count, seconds / 2) for batch_count in (PRODUCERS, 1)
    )
    rate = batches / usage.seconds
    return {
        "batches/s": rate,
        "bare batches/s": together,
        "bare batches/s, each synced by itself": apart,
        "share of bare": rate / together,
        **usage.samples(batches * load.records, batches * len(load.batch)),
    }


class Producer:
    """One connection with one request in flight, to one partition after the other."""

    def __init__(self, port: int, topic: str, first: int, partitions: int, load: Load) -> None:
        self._client = RawClient(port)
        self._buffer = bytearray()
        self.socket: socket.socket = self._client.socket
        requests = (produce_request(topic, {(first + n) % partitions: load.batch}, acks=-1) for n in range(partitions))
        payloads = [self._client.encode(request, PRODUCE_VERSION) for request in requests]
        self._frames = itertools.cycle([SIZE.pack(len(payload)) + payload for payload in payloads])
        self.send()
        check(self._client.receive(ProduceResponse, PRODUCE_VERSION))

    def send(self) -> None:
        """Send the next batch."""
        self.socket.sendall(next(self._frames))

    def is_answered(self) -> bool:
        """Receive bytes; return whether the response is complete. Its contents are not checked: the log is counted in the end."""
        self._buffer += self.socket.recv(65536)
        if len(self._buffer) < SIZE.size or len(self._buffer) < SIZE.size + SIZE.unpack_from(self._buffer)[0]:
            return False
        self._buffer.clear()
        return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def run_producers(producers: list[Producer], seconds: float) -> int:
    """Keep all producers busy for *seconds*; return the number of responses."""
    selector = selectors.DefaultSelector()
    for producer in producers:
        selector.register(producer.socket, selectors.EVENT_READ, producer)
        producer.send()
    answered, under_way, deadline = 0, len(producers), time.monotonic() + seconds
    while under_way:
        for key, _ in selector.select():
            producer = key.data
            if producer.is_answered():
                answered += 1
                if time.monotonic() < deadline:
                    producer.send()
                else:
                    under_way -= 1
    for producer in producers:
        producer.close()
    return answered


def bare_batches(folder: Path, batch: bytes, partitions: int, together: int, seconds: float) -> float:
    """Return the batches a second of the disk alone: a loop writes *together* batches to the files in turn, then syncs each."""
    with tempfile.TemporaryDirectory(dir=folder) as bare, ExitStack() as stack:
        paths = [Path(bare) / str(number) for number in range(partitions)]
        files = [stack.enter_context(path.open("ab", buffering=0)) for path in paths]
        written = [files[number % partitions] for number in range(together)]
        begin, rounds = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            for file in written:
                file.write(batch)
            for file in written[:partitions]:
                os.fdatasync(file)
            rounds += 1
        return rounds * together / (time.monotonic() - begin)


def make_row(name: str, partitions: int, batch_bytes: int) -> Row:
    words = f"{batch_bytes // 1024} KB batches, " + ("one partition" if partitions == 1 else f"{partitions} partitions")
    return Row(
        name,
        f"Group commit, {words}",
        f"{PRODUCERS} producers, each with one batch in flight, write to one partition after the other: {words}. Every batch is "
        "on the disk before it is acknowledged: kafkacompat.acks.after=fsync, and flush.messages=1 in Kafka. *Bare* is the disk "
        f"alone, right after each run: a loop that writes {PRODUCERS} such batches and then calls fdatasync on each file.",
        partial(measure, partitions, batch_bytes),
        [
            Goal("share of bare", 0.75, at_least=True, is_ratio=False),
            Goal("batches/s", 5.0, at_least=True),
        ],
        contenders=(HEADER, RECORDS, KAFKA),
        properties={"kafkacompat.acks.after": "fsync", "log.flush.interval.messages": "1"},
    )


ROWS = [
    make_row("group-commit-1", 1, BATCH_BYTES),
    make_row("group-commit-100", 100, BATCH_BYTES),
    make_row("group-commit-large", 1, 8 * BATCH_BYTES),
]
