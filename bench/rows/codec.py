"""Codec: the time to read and write protocol messages, beside other implementations in Python; no broker runs."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from bench.row import RECORDS, Goal, LibraryRow, Options, Samples
from kafkacompat.wire.apis.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkacompat.wire.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkacompat.wire.compiler import decode_message, encode_message

PRODUCE_VERSION = 9
METADATA_VERSION = 12
PARTITIONS = 6
TOPICS = 1_000
BATCH_BYTES = 16_384
REPEATS_OF_SMALL, REPEATS_OF_LARGE = 20_000, 20

READ_PRODUCE = "us to read Produce 9 with 6 batches"
WRITE_PRODUCE = "us to write its answer"
WRITE_METADATA = "ms to write Metadata 12 with 1,000 topics of 6 partitions"


def produce_request() -> ProduceRequest:
    """Return a request with random bytes as the batch of each of six partitions; only the request around them is decoded."""
    data = [PartitionProduceData(index=index, records=os.urandom(BATCH_BYTES)) for index in range(PARTITIONS)]
    topic = TopicProduceData(name="departures", partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_answer() -> ProduceResponse:
    """Return the response of a broker to a successful request."""
    outcomes = [
        PartitionProduceResponse(index=index, base_offset=1_000_000 * index, log_start_offset=0)
        for index in range(PARTITIONS)
    ]
    return ProduceResponse(responses=[TopicProduceResponse(name="departures", partition_responses=outcomes)])


def metadata_answer() -> MetadataResponse:
    """Return the response of one node about all of its topics."""
    partitions = [
        MetadataResponsePartition(partition_index=index, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
        for index in range(PARTITIONS)
    ]
    topics = [
        MetadataResponseTopic(name=f"departures-{number}", topic_id=os.urandom(16), partitions=partitions)
        for number in range(TOPICS)
    ]
    broker = MetadataResponseBroker(node_id=1, host="broker.example.org", port=9092)
    return MetadataResponse(brokers=[broker], cluster_id="MkU3OEVBNTcwNTJENDM2Qk", controller_id=1, topics=topics)


def measure_ours(options: Options) -> Samples:
    """Measure this project's compiled readers and writers."""
    request = memoryview(encode_message(produce_request(), PRODUCE_VERSION))
    answer, metadata = produce_answer(), metadata_answer()
    return _take_samples(
        options,
        lambda: decode_message(ProduceRequest, request, PRODUCE_VERSION),
        lambda: encode_message(answer, PRODUCE_VERSION),
        lambda: encode_message(metadata, METADATA_VERSION),
    )


def measure_kio(options: Options) -> Samples:
    """Measure kio, whose reader is native code and whose writer is Python."""
    from kio.schema.metadata.v12.response import MetadataResponse as Metadata
    from kio.schema.produce.v9.request import ProduceRequest as Request
    from kio.schema.produce.v9.response import ProduceResponse as Answer
    from kio.serial import entity_reader, entity_writer

    def writing(entity: type[Any], content: bytes) -> Callable[[], bytes]:
        value, write = entity_reader(entity)(content, 0)[0], entity_writer(entity)

        def run() -> bytes:
            out = io.BytesIO()
            write(out, value)
            return out.getvalue()

        return _check_result(run, content)

    request, read = encode_message(produce_request(), PRODUCE_VERSION), entity_reader(Request)
    return _take_samples(
        options,
        lambda: read(request, 0),
        writing(Answer, encode_message(produce_answer(), PRODUCE_VERSION)),
        writing(Metadata, encode_message(metadata_answer(), METADATA_VERSION)),
    )


def measure_kafka_python(options: Options) -> Samples:
    """Measure kafka-python 3, which compiles its schemas to Python as this project does."""
    from kafka.protocol.metadata import MetadataResponse as Metadata
    from kafka.protocol.producer import ProduceRequest as Request
    from kafka.protocol.producer import ProduceResponse as Answer

    def writing(message: type[Any], content: bytes, number: int) -> Callable[[], bytes]:
        value = message.decode(content, version=number)
        value._header = None  # set only for messages with a header, but read when any message is written
        return _check_result(lambda: bytes(value.encode(version=number)), content)

    request = encode_message(produce_request(), PRODUCE_VERSION)
    return _take_samples(
        options,
        lambda: Request.decode(request, version=PRODUCE_VERSION),
        writing(Answer, encode_message(produce_answer(), PRODUCE_VERSION), PRODUCE_VERSION),
        writing(Metadata, encode_message(metadata_answer(), METADATA_VERSION), METADATA_VERSION),
    )


def _check_result(run: Callable[[], bytes], content: bytes) -> Callable[[], bytes]:
    """Return *run* after checking that its result equals that of the others."""
    assert run() == content
    return run


def _take_samples(
    options: Options,
    read_produce: Callable[[], object],
    write_produce: Callable[[], object],
    write_metadata: Callable[[], object],
) -> Samples:
    small, large = options.count(REPEATS_OF_SMALL), options.count(REPEATS_OF_LARGE)
    return {
        READ_PRODUCE: 1e6 * _seconds_each(read_produce, small),
        WRITE_PRODUCE: 1e6 * _seconds_each(write_produce, small),
        WRITE_METADATA: 1e3 * _seconds_each(write_metadata, large),
    }


def _seconds_each(work: Callable[[], object], repeats: int) -> float:
    work()  # the first call compiles the reader or writer
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - begin) / repeats


LIBRARIES = {RECORDS: measure_ours, f"kafka-python {version('kafka-python')}": measure_kafka_python}
if find_spec("kio"):  # which needs Python 3.11
    LIBRARIES[f"kio {version('kio')}"] = measure_kio

ROWS = [
    LibraryRow(
        "codec",
        "Reading and writing messages",
        "No broker: one process reads or writes one message in memory again and again.",
        LIBRARIES,
        [
            Goal(READ_PRODUCE, 15, at_least=False, is_ratio=False),
            Goal(WRITE_PRODUCE, 15, at_least=False, is_ratio=False),
            Goal(WRITE_METADATA, 15, at_least=False, is_ratio=False),
        ],
    )
]
