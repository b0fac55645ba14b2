"""A disk that fills up: refused and accepted requests, and a recovery with all acknowledged records.

The disk is a file system in memory of a few megabytes, for which the test has to be allowed to mount one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests import batches
from compat_tests.brokers import Broker, KafkacompatBroker
from compat_tests.java_tools import java_command
from compat_tests.raw_client import RawClient, produce_request
from compat_tests.test_restart import QUIET, create_topic
from compat_tests.waiting import pause, until
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode

MIB = 1 << 20
DISK_BYTES = 30 * MIB
RESERVE_BYTES = 8 * MIB
SMALL_SEGMENTS: dict[str, Any] = {"segment.bytes": str(MIB), "file.delete.delay.ms": "100"}
PROPERTIES = {
    "log.retention.check.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
    "kafkacompat.disk.reserve.bytes": str(RESERVE_BYTES),
}
VALUE_BYTES = 50_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder that is a file system of DISK_BYTES."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class SmallBroker(KafkacompatBroker):
    """Ours, over a small disk."""

    def __init__(self, folder: Path, disk: Path, properties: dict[str, str]) -> None:
        super().__init__(folder, properties)
        self.data_folder = disk / "data"

    def lines(self, words: str) -> list[str]:
        """Return the lines of its log that have these words."""
        return [line for line in self.stderr().splitlines() if words in line]


def small_broker(tmp_path: Path, disk: Path, **properties: str) -> SmallBroker:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return SmallBroker(tmp_path / "node", disk, {**PROPERTIES, **named})


class Writer:
    """A stock producer that writes all the time; ``stored`` has the acknowledged values by offset."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.stored: dict[int, bytes] = {}
        self.errors: list[object] = []
        self._stop = threading.Event()
        self._topic = topic
        self._bootstrap = broker.bootstrap
        # A test that fails does not stop it.
        self._thread = threading.Thread(target=self.write, daemon=True)
        self._thread.start()

    def write(self) -> None:
        settings = {"acks": "all", "enable.idempotence": True, "queue.buffering.max.messages": 30, **QUIET}
        producer = Producer({"bootstrap.servers": self._bootstrap, **settings})
        while not self._stop.is_set():
            try:
                producer.produce(self._topic, os.urandom(VALUE_BYTES), partition=0, on_delivery=self._delivered)
            except BufferError:
                producer.poll(0.02)
        producer.flush(20)

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.stored[message.offset()] = message.value()
        else:
            self.errors.append(error)

    def stop(self) -> None:
        """Stop writing; all written records are acknowledged when this returns."""
        self._stop.set()
        self._thread.join()


class PythonWriter(Writer):
    """The same with kafka-python."""

    def write(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self._bootstrap, acks="all")
        under_way = deque[Any]()
        while not self._stop.is_set():
            value = os.urandom(VALUE_BYTES)
            sent = producer.send(self._topic, value, partition=0)
            sent.add_callback(lambda metadata, value=value: self.stored.__setitem__(metadata.offset, value))
            sent.add_errback(self.errors.append)
            under_way.append(sent)
            while len(under_way) > 30 and not self._stop.is_set():
                if under_way[0].is_done:
                    under_way.popleft()
                else:
                    pause(0.01)
        producer.flush(20)
        producer.close()


def produce_code(broker: Broker, topic: str) -> int:
    """Return the error code of one small batch, sent once."""
    with RawClient(broker.port) as client:
        answer = client.call(produce_request(topic, {0: batches.build([b"v"])}, acks=1), ProduceResponse, 9)
        return answer.responses[0].partition_responses[0].error_code


def commit_offset(broker: Broker, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", **QUIET})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    assert committed.offset == offset
    consumer.close()


def read_from(broker: Broker, topic: str, begin: int, end: int) -> dict[int, bytes]:
    """Read a partition's records, whose checksums the client checks."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "r", "check.crcs": True, **QUIET})
    consumer.assign([TopicPartition(topic, 0, begin)])
    records: dict[int, bytes] = {}
    while begin + len(records) < end:
        message: Any = consumer.poll(20)
        assert message is not None and message.error() is None, message and message.error()
        records[message.offset()] = message.value()
    consumer.close()
    return records


def is_full(broker: Broker, topic: str) -> bool:
    return produce_code(broker, topic) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("writer", [Writer, PythonWriter])
def test_producers_wait_at_the_reserve_and_come_back(
    tmp_path: Path, disk: Path, name: str, writer: type[Writer]
) -> None:
    with small_broker(tmp_path, disk) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        create_topic(broker, name, **SMALL_SEGMENTS)
        create_topic(broker, "other")
        writing = writer(broker, name)
        until(lambda: is_full(broker, "other"))
        free_bytes = shutil.disk_usage(disk).free
        assert RESERVE_BYTES - 2 * MIB < free_bytes < RESERVE_BYTES + 2 * MIB
        stuck_at = len(writing.stored)
        for offset in range(1, 21):
            commit_offset(broker, name, offset)
        with pytest.raises(KafkaException, match="KAFKA_STORAGE_ERROR"):
            admin.create_topics([NewTopic("new", 1, 1)])["new"].result(20)
        assert shutil.disk_usage(disk).free > RESERVE_BYTES - 3 * MIB
        assert [len(broker.lines(words)) for words in (" is full ", "has room again")] == [1, 0]
        admin.delete_records([TopicPartition(name, 0, stuck_at - 50)])
        until(lambda: len(writing.stored) > stuck_at + 100)
        writing.stop()
        assert writing.errors == []
        assert len(broker.lines("has room again")) >= 1
        last = max(writing.stored)
        broker.kill()
        broker.start()
        begin, end = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "w"}).get_watermark_offsets(
            TopicPartition(name, 0), timeout=20
        )
        assert (begin >= stuck_at - 50, end) == (True, last + 1)
        expected = {offset: value for offset, value in writing.stored.items() if offset >= begin}
        assert read_from(broker, name, begin, end) == expected


def test_kafkas_own_producer_waits_at_the_reserve_and_comes_back(tmp_path: Path, disk: Path, name: str) -> None:
    with small_broker(tmp_path, disk) as broker:
        create_topic(broker, name, **SMALL_SEGMENTS)
        create_topic(broker, "ballast", **SMALL_SEGMENTS)
        ballast = Writer(broker, "ballast")
        until(lambda: len(ballast.stored) > 250)
        ballast.stop()
        settings = [f"bootstrap.servers={broker.bootstrap}", "acks=all"]
        sizes = ["--num-records", "300", "--record-size", str(VALUE_BYTES), "--throughput", "-1"]
        command = java_command(
            "org.apache.kafka.tools.ProducerPerformance", ["--topic", name, *sizes, "--producer-props", *settings]
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as producer:
            until(lambda: is_full(broker, name))
            assert producer.poll() is None
            admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
            admin.delete_topics(["ballast"])["ballast"].result(20)
            output, _ = producer.communicate(timeout=60)
        assert producer.returncode == 0, output
        assert "300 records sent" in output
        assert "TimeoutException" not in output
        assert len(read_from(broker, name, 0, 300)) == 300


def test_a_disk_that_is_full_to_the_last_byte_loses_nothing(tmp_path: Path, disk: Path, name: str) -> None:
    """Without a reserve the writes themselves fail, in the middle of a batch."""
    with small_broker(tmp_path, disk, kafkacompat_disk_reserve_bytes="0") as broker:
        create_topic(broker, name, **SMALL_SEGMENTS)
        # A file fills the disk, not a topic: the deletion of a topic needs room for the metadata, and there may be none.
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(DISK_BYTES // 2))
        writing = Writer(broker, name)
        until(lambda: broker.lines(" is full (a write failed: the disk is full"))
        until(lambda: is_full(broker, name))
        stuck_at = len(writing.stored)
        ballast.unlink()
        until(lambda: len(writing.stored) > stuck_at + 50)
        writing.stop()
        assert broker.lines("is taken offline") == []
        assert read_from(broker, name, 0, len(writing.stored)) == writing.stored
        broker.kill()
        broker.start()
        assert read_from(broker, name, 0, len(writing.stored)) == writing.stored
