"""Bit rot under a running broker, and files that go away under readers."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic
from compat_tests.conftest import MakeBroker
from compat_tests.raw_client import ClosedError, RawClient, produce_request
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch, crc_matches, read_header, split_batches

NOW_MS = 1_700_000_000_000
BATCH_RECORDS = 10
BATCH = build_batch([(NOW_MS, b"k", b"v" * 10_000, []) for _ in range(BATCH_RECORDS)])
SEGMENT_BYTES = 1 << 20
ANSWER_BYTES = 16 << 20
"""More than a connection's two ends hold."""
EARLIEST = -2


@pytest.fixture(autouse=True)
def only_ours(broker_kind: str) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("Apache Kafka does not look for bit rot")


def fill_topic(client: RawClient, topic: str, count: int) -> None:
    for _ in range(count):
        answer = client.call(produce_request(topic, {0: BATCH}), ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def fetch_request(topic: str, offset: int, max_bytes: int = SEGMENT_BYTES) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )


def fetch(client: RawClient, topic: str, offset: int) -> tuple[int, list[int]]:
    """The error code, and the base offsets of the whole batches."""
    answer = client.call(fetch_request(topic, offset), FetchResponse, 12)
    (data,) = answer.responses[0].partitions
    whole_batches = list(split_batches(bytes_of(data.records)))
    assert all(crc_matches(batch, read_header(batch)) for batch in whole_batches)
    return data.error_code, [read_header(batch).base_offset for batch in whole_batches]


def bytes_of(records: object) -> bytes | memoryview:
    assert isinstance(records, (bytes, memoryview))
    return records


def flip_bit(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def log_tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafkacompat", "log", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_flipped_bit_in_a_rolled_segment_is_found_and_only_its_batch_is_refused(make_broker: MakeBroker) -> None:
    broker = make_broker(
        {"kafkacompat.scrub.interval.ms": "500", "kafkacompat.scrub.max.bytes.per.second": "100000000"}
    )
    create_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES))
    with RawClient(broker.port) as client:
        fill_topic(client, "t", 25)
        assert log_tool("verify", str(broker.data_folder)).returncode == 0
        bad = 3 * BATCH_RECORDS
        path = broker.data_folder / "t-0" / f"{0:020d}.log"
        flip_bit(path, 3 * len(BATCH) + 5000)
        lines = until(lambda: [line for line in broker.stderr().splitlines() if "is damaged" in line])
        assert (
            f"{path} is damaged: bytes {3 * len(BATCH)} to {4 * len(BATCH) - 1}, offsets {bad} to {bad + 9},"
            in lines[0]
        )
        assert fetch(client, "t", 0) == (0, [0, 10, 20])
        for offset in (bad, bad + 9):
            assert fetch(client, "t", offset) == (ErrorCode.CORRUPT_MESSAGE, [])
        code, base_offsets = fetch(client, "t", bad + 10)
        assert (code, base_offsets[0]) == (0, bad + 10)
        assert read_with_a_consumer(broker, bad + 10, 25 * BATCH_RECORDS) == list(range(bad + 10, 25 * BATCH_RECORDS))
        fill_topic(client, "t", 1)
        assert len([line for line in broker.stderr().splitlines() if "is damaged" in line]) == 1
    found_by_verify = log_tool("verify", str(broker.data_folder))
    assert found_by_verify.returncode == 1 and f"{bad} to {bad + 9}" in found_by_verify.stdout
    refused = log_tool("repair", "--truncate", "--yes", str(broker.data_folder))
    assert refused.returncode == 2 and "stop it first" in refused.stderr


def read_with_a_consumer(broker: Broker, offset: int, end_offset: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition("t", 0, offset)])
    offsets: list[int] = []

    def complete() -> bool:
        for message in consumer.consume(1000, 0.1):
            assert not message.error(), message.error()
            offsets.append(message.offset())
        return bool(offsets) and offsets[-1] == end_offset - 1

    until(complete, every_seconds=0)
    consumer.close()
    return offsets


def test_a_running_brokers_directory_is_verified_without_complaint(make_broker: MakeBroker) -> None:
    broker = make_broker({"log.retention.check.interval.ms": "100", "log.segment.delete.delay.ms": "0"})
    create_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES), retention_bytes=str(5 * SEGMENT_BYTES))
    done = threading.Event()

    def load() -> None:
        with RawClient(broker.port) as client:
            while not done.is_set():
                fill_topic(client, "t", 1)

    producing = threading.Thread(target=load)
    producing.start()
    try:
        path = broker.data_folder / "t-0"
        until(lambda: not (path / f"{0:020d}.log").exists())
        for _ in range(5):
            verified = log_tool("verify", str(broker.data_folder))
            assert (verified.returncode, verified.stdout) == (0, ""), verified.stdout + verified.stderr
    finally:
        done.set()
        producing.join()


class SlowReader:
    """Fetches, and takes the answer a little at a time."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._client = RawClient(broker.port)
        self._client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
        self._topic = topic
        self.whole = self.cut_off = 0

    def begin(self, offset: int) -> None:
        self._client.send(fetch_request(self._topic, offset, ANSWER_BYTES), 12)

    def take(self) -> None:
        """Take the rest: whole batches with offsets that follow one another, or the end of the connection."""
        try:
            answer = self._client.receive(FetchResponse, 12)
        except ClosedError:
            self.cut_off += 1
            return
        (data,) = answer.responses[0].partitions
        assert data.error_code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
        expected = None
        for batch in split_batches(bytes_of(data.records)):
            header = read_header(batch)
            assert crc_matches(batch, header)
            assert expected in (None, header.base_offset)
            expected = header.last_offset + 1
        self.whole += 1

    def close(self) -> None:
        self._client.socket.close()


def start_offset(client: RawClient, topic: str) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)])
    answer = client.call(ListOffsetsRequest(replica_id=-1, topics=[wanted]), ListOffsetsResponse, 5)
    return answer.topics[0].partitions[0].offset


def delete_records(client: RawClient, topic: str, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=10_000)
    client.call(request, DeleteRecordsResponse, 2)


def test_slow_readers_of_deleted_segments_get_whole_batches(make_broker: MakeBroker) -> None:
    properties = {"log.retention.check.interval.ms": "50", "log.segment.delete.delay.ms": "0"}
    broker = make_broker(properties)
    create_topic(broker, "t", segment_bytes=str(ANSWER_BYTES), retention_bytes=str(ANSWER_BYTES))
    readers = [SlowReader(broker, "t") for _ in range(4)]
    with RawClient(broker.port) as client:
        for _ in range(3):
            delete_under(readers, broker, client)
    assert [(reader.whole, reader.cut_off) for reader in readers] == [(3, 0)] * len(readers)
    for reader in readers:
        reader.close()


def delete_under(readers: Sequence[SlowReader], broker: Broker, client: RawClient) -> None:
    """Let all readers request most of a segment, delete it, and return the bytes that they get."""
    first = start_offset(client, "t")
    fill_topic(client, "t", ANSWER_BYTES // len(BATCH))
    for index, reader in enumerate(readers):
        reader.begin(first + index * BATCH_RECORDS)
    pause(0.1)
    fill_topic(client, "t", 2)
    delete_records(client, "t", first + (ANSWER_BYTES // len(BATCH) + 1) * BATCH_RECORDS)
    gone = broker.data_folder / "t-0" / f"{first:020d}.log"
    until(lambda: not gone.exists())
    before = broker.cpu_seconds()
    pause(1)
    assert broker.cpu_seconds() - before < 0.5, "something spins while readers stand still"
    for reader in readers:
        reader.take()
