"""Down-conversion: a client that knows only message sets reads batches; beside the last Kafka release that converts."""

from __future__ import annotations

from functools import partial

from bench.load import Load, produce, records_size
from bench.row import OLD_KAFKA, RECORDS, Goal, Options, Row, Samples
from bench.topics import a_topic
from bench.usage import Usage
from compat_tests.brokers import Broker
from compat_tests.raw_client import RawClient
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

FETCH_VERSION = 3
BYTES = 60_000_000
PARTITION_BYTES = 1 << 20
# Bytes that format 1 adds to a record without a key.
ENTRY_BYTES = 34


def measure(broker: Broker, options: Options, *, record_bytes: int) -> Samples:
    """Read 60 MB of batches as message sets of format 1 over one connection."""
    load = Load.of(record_bytes=record_bytes)
    requests = options.count(BYTES // len(load.batch))
    with a_topic(broker, 1) as topic:
        records = produce(broker.port, topic, load, partitions=1, requests=requests)
        with Usage(broker) as usage:
            read_converted(broker.port, topic, records, ENTRY_BYTES + record_bytes)
    figures = usage.samples(records, records // load.records * len(load.batch))
    # The CPU time of the broker's worker processes is not in its own, so that figure is left out.
    return {name: figures[name] for name in ("records/s", "MB/s", "resident MB")}


def read_converted(port: int, topic: str, records: int, message_bytes: int) -> None:
    """Read a partition to its end; all messages have the same size, so the next offset follows from the bytes."""
    offset = 0
    with RawClient(port) as client:
        while offset < records:
            wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES)
            topics = [FetchTopic(topic=topic, partitions=[wanted])]
            request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics)
            (part,) = client.call(request, FetchResponse, FETCH_VERSION).responses[0].partitions
            assert part.error_code == 0, f"Fetch was answered with the error {part.error_code}"
            assert records_size(part), f"nothing was read at offset {offset}"
            # Kafka's response ends with an entry that claims more bytes than follow; it is shorter than a message.
            offset = min(records, offset + whole_messages(bytes(part.records or b""), message_bytes))  # type: ignore[arg-type]


def whole_messages(data: bytes, message_bytes: int) -> int:
    """Return the number of whole messages in a set, without the padding at its end."""
    count = len(data) // message_bytes
    while count and data[(count - 1) * message_bytes + 8 : (count - 1) * message_bytes + 12] != _encode_size(
        message_bytes
    ):
        count -= 1
    return count


def _encode_size(message_bytes: int) -> bytes:
    return (message_bytes - 12).to_bytes(4, "big")


def _make_row(record_bytes: int, title: str, goals: list[Goal]) -> Row:
    return Row(
        f"down-conversion-{record_bytes}",
        title,
        f"60 MB of batches of {record_bytes}-byte records, read by Fetch {FETCH_VERSION} over one connection, so that the broker "
        "converts them to messages of format 1. kafkacompat converts in separate processes. MB are of batches; the memory is "
        "that of the broker's main process.",
        partial(measure, record_bytes=record_bytes),
        goals,
        contenders=(RECORDS, OLD_KAFKA),
    )


ROWS = [
    _make_row(1024, "Down-conversion", [Goal("MB/s", 20, at_least=True, is_ratio=False)]),
    _make_row(100, "Down-conversion of small records", []),
]
