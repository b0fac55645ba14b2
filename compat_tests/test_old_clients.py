"""Java clients of the times of message sets, and those of today, at one broker: each reads the other's records."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from compat_tests import batches
from compat_tests.brokers import Broker
from compat_tests.java_tools import compile_java, run_java
from compat_tests.raw_client import RawClient, produce_request
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import read_header, read_records
from kafkacompat.wire.record_batch import split_batches as whole_batches

JAVA = Path(__file__).resolve().parent / "java"
PRODUCERS = ("0_8_2", "0_9_0", "0_10_2")
CONSUMERS = ("0_9_0", "0_10_2")
CODECS = {"none": 0, "gzip": batches.GZIP, "snappy": batches.SNAPPY, "lz4": batches.LZ4}
RECORDS = 300

each_codec = pytest.mark.parametrize("codec", CODECS)


@pytest.fixture(autouse=True)
def _old_enough(broker_kind: str) -> None:
    if broker_kind == "kafka":
        pytest.skip("Apache Kafka 4 knows no message sets any more (KIP-896)")


def run_old(program: str, clients: str, *arguments: object) -> list[str]:
    """The lines that a program prints with the clients of a release."""
    pom = JAVA / f"clients_{clients}" / "pom.xml"
    classes = compile_java(JAVA / f"{program}.java", pom=pom)
    done = run_java(program, [str(argument) for argument in arguments], extra_class_path=[classes], pom=pom)
    return done.stdout.splitlines()


def create_topic(broker: Broker, name: str) -> None:
    with RawClient(broker.port) as client:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, 5)


def produce(broker: Broker, topic: str, *given: bytes) -> None:
    with RawClient(broker.port) as client:
        for batch in given:
            answer = client.call(produce_request(topic, {0: batch}), ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def fetch(broker: Broker, topic: str, version: int) -> tuple[int, bytes]:
    """Error code and records of partition 0 from its beginning."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    with RawClient(broker.port) as client:
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=topics)
        partition = client.call(request, FetchResponse, version).responses[0].partitions[0]
    assert isinstance(partition.records, (bytes, memoryview))
    return partition.error_code, bytes(partition.records)


def in_shares(lines: list[str], count: int) -> dict[str, list[str]]:
    """Return the printed lines by codec; the program prints *count* lines for each topic."""
    assert len(lines) == count * len(CODECS), lines
    return {codec: lines[index * count : (index + 1) * count] for index, codec in enumerate(CODECS)}


@cache
def offsets_written(broker: Broker, clients: str) -> dict[str, list[str]]:
    """Have one JVM write a topic with each codec, and return the offsets that it got, by the codec."""
    topics = {codec: f"written-by-{clients}-{codec}" for codec in CODECS}
    for topic in topics.values():
        create_topic(broker, topic)
    named = [word for codec, topic in topics.items() for word in (topic, codec)]
    return in_shares(run_old("OldProducer", clients, broker.bootstrap, RECORDS, *named), RECORDS)


@each_codec
@pytest.mark.parametrize("clients", PRODUCERS)
def test_records_of_old_producers_are_stored_in_their_codec(broker: Broker, clients: str, codec: str) -> None:
    assert offsets_written(broker, clients)[codec] == [str(number) for number in range(RECORDS)]
    _, stored = fetch(broker, f"written-by-{clients}-{codec}", 11)
    assert {read_header(batch).codec for batch in whole_batches(stored)} == {CODECS[codec]}
    records = [record for batch in whole_batches(stored) for record in read_records(batch)]
    assert [(record.key, record.value) for record in records] == [
        (b"key %d" % number, b"value %d" % number) for number in range(RECORDS)
    ]
    # 0.10 is the first to send a time.
    assert all((record.timestamp > 0) == (clients == "0_10_2") for record in records)


@cache
def records_read(broker: Broker, clients: str) -> dict[str, list[str]]:
    """Write a topic with each codec, and return the records that one JVM reads of each from offset 150 on, by the codec."""
    topics = {codec: f"read-by-{clients}-{codec}" for codec in CODECS}
    for codec, topic in topics.items():
        create_topic(broker, topic)
        headers = [("name", b"content")]
        sent = [
            batches.build(
                [b"value %d.%d" % (batch, number) for number in range(100)], codec=CODECS[codec], headers=headers
            )
            for batch in range(5)
        ]
        produce(broker, topic, *sent, batches.build([None, b""], key=None, codec=CODECS[codec]))
    count = 502 - 150
    return in_shares(run_old("OldConsumer", clients, broker.bootstrap, count, 150, *topics.values()), count)


@each_codec
@pytest.mark.parametrize("clients", CONSUMERS)
def test_old_consumers_read_records_of_new_producers(broker: Broker, clients: str, codec: str) -> None:
    values = [b"value %d.%d" % divmod(number, 100) for number in range(150, 500)]
    expected = [f"{150 + index} {b'key'.hex()} {value.hex()}" for index, value in enumerate(values)]
    assert records_read(broker, clients)[codec] == [*expected, "500 null null", "501 null "]


def test_old_fetch_versions_are_refused_zstd_batches(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, batches.build([b"a"]), batches.build([b"b"], codec=batches.ZSTD))
    for version in (0, 1, 2, 3):
        code, records = fetch(broker, name, version)
        assert (code, len(records) > 0) == (0, True), "the records before the batch can be read"
    create_topic(broker, name + "-only")
    produce(broker, name + "-only", batches.build([b"b"], codec=batches.ZSTD))
    for version in (0, 1, 2, 3):
        assert fetch(broker, name + "-only", version) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, b"")


def test_a_large_compressed_set_unpacks_in_another_process(broker: Broker, name: str) -> None:
    create_topic(broker, name)
    offsets = run_old("OldProducer", "0_8_2", broker.bootstrap, 20_000, name, "gzip")
    assert offsets == [str(number) for number in range(20_000)]
    assert len(run_old("OldConsumer", "0_9_0", broker.bootstrap, 20_000, 0, name)) == 20_000
