"""Transactions: the commits a second of one producer, and the cost of read_committed."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from statistics import median

from bench.load import BATCH_BYTES, RECORD_BYTES, Load, receive_into
from bench.row import Goal, Options, Row, Samples
from bench.topics import a_topic, record_count
from bench.usage import Usage
from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient, fetch_request, produce_request
from compat_tests.same_answers.transactions import (
    ProducerIdAndEpoch,
    a_producer,
    make_end_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.end_txn import EndTxnResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode

# The versions of the Java client 4: Produce adds the partition to the transaction, and each transaction has an epoch of its own.
PRODUCE_VERSION = 12
END_VERSION = 5
FETCH_VERSION = 11

SECONDS = 5
SIZES = (1, 10, 100)

PARTITIONS = 6
TRANSACTIONS = 1500
ABORTED_EVERY = 5
TURNS = 5

# Positions in a batch: attributes (transactional); producer id, epoch and base sequence.
ATTRIBUTES_POSITION = 21
TRANSACTIONAL = 0x10
PRODUCER_POSITION = 43
PRODUCER = struct.Struct(">qhi")
# A batch's base offset and length, and the last offset's distance from the first.
BATCH = struct.Struct(">qi11xi")
BATCH_OVERHEAD = 12


class TransactionalProducer:
    """A connection that writes one transaction after the other, each request after the previous response.

    A transaction is the same batch for every partition of the topic. Raises AssertionError for a response with an error.
    """

    def __init__(self, port: int, topic: str, partitions: int, batch: bytes) -> None:
        with closing(Transcript(port)) as script:
            wait_for_coordinator(script, topic)
            self._producer: ProducerIdAndEpoch = a_producer(script, topic)
        self._client = RawClient(port)
        self._topic = topic
        self._partitions = range(partitions)
        self._batch = batches.patch_header(batch, ATTRIBUTES_POSITION, "h", TRANSACTIONAL)

    def close(self) -> None:
        """Close the connection."""
        self._client.socket.close()

    def run(self, *, committed: bool = True) -> None:
        """Begin a transaction, write its batch and commit it."""
        request = produce_request(
            self._topic, dict.fromkeys(self._partitions, stamp_batch(self._batch, self._producer))
        )
        request.transactional_id = self._topic
        payload = self._client.encode(request, PRODUCE_VERSION)
        # If the previous transaction has not ended everywhere, a client sends the request again.
        while self._send_and_check(payload) == {ErrorCode.CONCURRENT_TRANSACTIONS}:
            pass
        answer = self._client.call(
            make_end_request(self._topic, self._producer, committed), EndTxnResponse, END_VERSION
        )
        assert not answer.error_code, f"EndTxn was answered with the error {answer.error_code}"
        self._producer = answer.producer_id, answer.producer_epoch

    def _send_and_check(self, payload: bytes) -> set[int]:
        """Send a Produce request; return the errors of its partitions, which may only be CONCURRENT_TRANSACTIONS."""
        self._client.send_frame(payload)
        (topic,) = self._client.receive(ProduceResponse, PRODUCE_VERSION).responses
        errors = {part.error_code for part in topic.partition_responses}
        assert errors in ({0}, {ErrorCode.CONCURRENT_TRANSACTIONS}), f"Produce was answered with the errors {errors}"
        return errors


def stamp_batch(batch: bytes, producer: ProducerIdAndEpoch) -> bytes:
    """Return a batch as a producer's first one in an epoch."""
    changed = bytearray(batch)
    PRODUCER.pack_into(changed, PRODUCER_POSITION, *producer, 0)
    return batches.with_crc(changed)


@contextmanager
def a_producer_of(broker: Broker, topic: str, partitions: int, batch: bytes) -> Iterator[TransactionalProducer]:
    """Yield a producer whose transactional id is the topic's name."""
    with closing(TransactionalProducer(broker.port, topic, partitions, batch)) as producer:
        yield producer


def measure_commits(size: int, broker: Broker, options: Options) -> Samples:
    """Commit one transaction after the other for some seconds."""
    batch = batches.build([os.urandom(RECORD_BYTES) for _ in range(size)], key=None)
    with a_topic(broker, 1) as topic, a_producer_of(broker, topic, 1, batch) as producer:
        producer.run()  # the first write to the partition takes longer and is not measured
        commits, deadline = 0, time.monotonic() + max(1.0, SECONDS * options.scale)
        with Usage(broker) as usage:
            while time.monotonic() < deadline:
                producer.run()
                commits += 1
        # The last transaction's marker may not be written yet.
        until(lambda: record_count(broker, topic, 1) == (commits + 1) * (size + 1))
    return {
        "commits/s": commits / usage.seconds,
        "records/s": commits * size / usage.seconds,
        "broker CPU s per thousand commits": usage.cpu_seconds / commits * 1e3,
        "resident MB": broker.resident_bytes() / 1e6,
    }


def measure_reading(broker: Broker, options: Options) -> Samples:
    """Read a log of many transactions at both isolation levels, in turn."""
    load, transactions = Load.of(BATCH_BYTES), options.count(TRANSACTIONS)
    with a_topic(broker, PARTITIONS) as topic:
        with a_producer_of(broker, topic, PARTITIONS, load.batch) as producer:
            for number in range(transactions):
                producer.run(committed=number % ABORTED_EVERY > 0)
        end = transactions * (load.records + 1)
        until(lambda: record_count(broker, topic, PARTITIONS) == PARTITIONS * end)
        read = partial(bytes_a_second, broker.port, topic, end)
        turns = [(read(isolation=0), read(isolation=1)) for _ in range(TURNS)]
    return {
        "read_uncommitted MB/s": median(every for every, _ in turns) / 1e6,
        "read_committed MB/s": median(committed for _, committed in turns) / 1e6,
        "committed/uncommitted": median(committed / every for every, committed in turns),
    }


def bytes_a_second(port: int, topic: str, end: int, *, isolation: int) -> float:
    """Read every partition from its beginning to *end*, an offset."""
    offsets, read_bytes, buffer = dict.fromkeys(range(PARTITIONS), 0), 0, bytearray(64 << 20)
    begun = time.monotonic()
    with RawClient(port) as client:
        while left := {number: offset for number, offset in offsets.items() if offset < end}:
            request = fetch_request(topic, left)
            request.isolation_level = isolation
            client.send(request, FETCH_VERSION)
            for part in receive_into(client.socket, buffer).responses[0].partitions:
                assert part.error_code == 0, f"Fetch was answered with the error {part.error_code}"
                records = part.records or b""
                assert isinstance(records, (bytes, memoryview))
                offsets[part.partition_index] = next_offset(records, left[part.partition_index])
                read_bytes += len(records)
    return read_bytes / (time.monotonic() - begun)


def next_offset(data: bytes | memoryview, offset: int) -> int:
    """Return the offset after the last whole batch, or *offset* if there is none."""
    position = 0
    while position + BATCH.size <= len(data):
        base_offset, length, last_delta = BATCH.unpack_from(data, position)
        position += BATCH_OVERHEAD + length
        if position <= len(data):
            offset = base_offset + last_delta + 1
    return offset


def commits_row(size: int) -> Row:
    words = "1 record" if size == 1 else f"{size} records"
    return Row(
        f"transactions-{size}",
        f"Transactions of {words}",
        f"One producer commits one transaction after the other, each one batch of {words} of 100 bytes to one partition. As the "
        "Java client 4 does, it sends Produce 12, which adds the partition by itself, and EndTxn 5, whose response carries the next "
        "epoch. Each request waits for the previous response. If the previous transaction has not ended everywhere, Produce waits "
        "in the broker for at most add.partitions.to.txn.retry.backoff.max.ms (100). If it is refused then, the producer sends it "
        "again at once. Kafka asks its coordinator again every add.partitions.to.txn.retry.backoff.ms (20), which takes most of "
        "its time: with 1 in place of 20 it committed three to five times as many. That was on a busy machine and is in no "
        "figure here.",
        partial(measure_commits, size),
        [Goal("commits/s", 1.0, at_least=True)],
    )


ROWS = [
    *map(commits_row, SIZES),
    Row(
        "read-committed",
        "Fetch with read_committed",
        f"Raw fetch of six partitions with {TRANSACTIONS:,} transactions of a 16 KB batch to each; every fifth is aborted. Both "
        f"isolation levels in turn; the figures are medians of {TURNS} turns.",
        measure_reading,
        [Goal("committed/uncommitted", 0.9, at_least=True, is_ratio=False)],
    ),
]
