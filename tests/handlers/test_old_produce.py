"""Produce v0-2: message sets, and batches all the same."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.storage.intake.preparation import AT_ONCE_MESSAGES_BYTES
from kafkacompat.storage.log_config import LOG_APPEND_TIME, LogConfig
from kafkacompat.wire.apis.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.message_set import make_entry_writer, wrap_messages
from kafkacompat.wire.record_batch import Record, read_header, read_records, split_batches
from tests.handlers.data_node import NOW_MS, DataNode, make_batch
from tests.handlers.test_produce import ask, list_codes, make_request
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.partitions.node import topic

GZIP, ZSTD = 1, 4


def make_messages(count: int = 1, magic: int = 1, value: bytes = b"v", key: bytes | None = b"k") -> bytes:
    write = make_entry_writer(magic, 0)
    return b"".join(write(index, NOW_MS + index, key, value) for index in range(count))


def make_wrapper(count: int = 2, magic: int = 1, value: bytes = b"v") -> bytes:
    return wrap_messages(magic, GZIP, count - 1, NOW_MS + count - 1, make_messages(count, magic, value))


def read_stored(node: DataNode, index: int = 0) -> bytes:
    region = node.node.replicas.find("t", index).log.read(0, 1 << 30)
    assert region is not None
    data = region.pread(0, region.size_bytes)
    region.release()
    return data


def list_records(node: DataNode) -> list[Record]:
    return [record for batch in split_batches(read_stored(node)) for record in read_records(batch)]


def ask_for_one(node: DataNode, data: bytes | None, version: int = 2, **kw: Any) -> PartitionProduceResponse:
    return ask(node, make_request(data, **kw), version)[0]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_becomes_a_batch(version: int, magic: int) -> None:
    node = DataNode()
    for data, base_offset in ((make_messages(2, magic), 0), (make_wrapper(2, magic), 2)):
        response = ask_for_one(node, data, version)
        assert (response.error_code, response.base_offset, response.log_append_time_ms) == (0, base_offset, -1)
    times = (NOW_MS, NOW_MS + 1) if magic else (-1, -1)
    assert list_records(node) == [Record(index, times[index % 2], b"k", b"v", []) for index in range(4)]
    assert [read_header(batch).codec for batch in split_batches(read_stored(node))] == [0, GZIP]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_batch_is_taken_as_it_is_of_any_codec(version: int) -> None:
    node = DataNode()
    for codec in (0, ZSTD):
        assert ask_for_one(node, make_batch(2, codec=codec), version).error_code == 0
    assert [read_header(batch).codec for batch in split_batches(read_stored(node))] == [0, ZSTD]
    assert ask_for_one(node, make_batch() + make_batch(), version).error_code == ErrorCode.INVALID_RECORD


def test_the_brokers_time_replaces_that_of_the_messages() -> None:
    node = DataNode(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    assert ask_for_one(node, make_messages(2, magic=0)).log_append_time_ms == NOW_MS
    assert [record.timestamp for record in list_records(node)] == [NOW_MS, NOW_MS]
    stamped = make_entry_writer(1, 8)(0, NOW_MS, b"k", b"v")
    assert ask_for_one(node, stamped).error_code == ErrorCode.INVALID_TIMESTAMP


def test_an_empty_set_is_no_error_and_nothing_to_do() -> None:
    node = DataNode()
    response = ask_for_one(node, b"")
    assert (response.error_code, response.base_offset) == (0, -1)
    assert ask_for_one(node, b"", name="absent").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask_for_one(node, None).error_code == ErrorCode.INVALID_RECORD
    assert node.node.replicas.find("t", 0).log.log_end_offset == 0


def test_message_sets_are_checked_like_batches() -> None:
    assert ask_for_one(DataNode(), make_messages()[:-1] + b"x").error_code == ErrorCode.CORRUPT_MESSAGE
    small = LogConfig(max_message_bytes=200)
    for data in (make_messages(1, value=bytes(200)), make_messages(20)):
        assert ask_for_one(DataNode(small), data).error_code == ErrorCode.MESSAGE_TOO_LARGE
    compacted = LogConfig(cleanup_policy=frozenset({"compact"}))
    assert ask_for_one(DataNode(compacted), make_messages(key=None)).error_code == ErrorCode.INVALID_RECORD
    assert (
        ask_for_one(DataNode(), make_entry_writer(1, 0)(0, NOW_MS * 2, b"k", b"v")).error_code
        == ErrorCode.INVALID_TIMESTAMP
    )


def test_a_time_that_looks_like_a_transaction_is_none() -> None:
    """Byte 22 has the attributes of a batch, and in a message of format 1 a part of its timestamp."""
    write = make_entry_writer(1, 0)
    times = [time for time in range(NOW_MS - 5000, NOW_MS) if write(0, time, b"k", b"v")[22] & 0x10]
    node = DataNode()
    for time in times[:1]:
        assert ask_for_one(node, write(0, time, b"k", b"v")).error_code == 0


@pytest.mark.parametrize(
    ("codec", "stored_as"), [("gzip", GZIP), ("uncompressed", 0), ("zstd", ZSTD), ("producer", None)]
)
def test_a_topics_codec_is_used_at_once(codec: str, stored_as: int | None) -> None:
    node = DataNode(LogConfig(compression_type=codec))
    assert (
        list_codes(ask(node, make_request(make_messages(3)), 1))
        == list_codes(ask(node, make_request(make_wrapper(3)), 1))
        == [0]
    )
    expected = [0, GZIP] if stored_as is None else [stored_as] * 2
    assert [read_header(batch).codec for batch in split_batches(read_stored(node))] == expected


# Longer conversions


def make_large() -> bytes:
    return make_messages(3, value=bytes(AT_ONCE_MESSAGES_BYTES // 3))


@pytest.mark.parametrize("data", [make_large(), make_wrapper()], ids=["large", "compressed"])
def test_large_message_sets_are_converted_in_a_worker_and_the_next_request_waits(data: bytes) -> None:
    node = DataNode()
    pending = node.send(make_request(data, make_messages(2)), 2)
    assert isinstance(pending, Pending)
    assert pending.in_order
    assert not has_fired(pending.response)
    node.node.work()
    assert node.workers.calls[0] == "take_in"
    assert has_fired(pending.response)
    answer = node.read(pending, ProduceResponse, 2)
    assert [response.error_code for response in answer.responses[0].partition_responses] == [0, 0]
    assert len(list_records(node)) in (2, 3)


def test_a_little_for_each_of_many_partitions_is_much() -> None:
    half = make_messages(2, value=bytes(AT_ONCE_MESSAGES_BYTES // 4))
    for data, elsewhere in (((half,), 0), ((half, half), 2)):
        node = DataNode()
        assert list_codes(ask(node, make_request(*data), 2)) == [0] * len(data)
        assert len(node.workers.calls) == elsewhere


def test_one_request_with_many_takes_turns_with_others() -> None:
    """Seven sets that unpacked to a hundred megabytes each held up all other old clients for minutes."""
    node = DataNode()
    many = node.send(make_request(make_large(), make_large()), 2)
    other = node.send(make_request(make_large()), 2)
    assert len(node.workers.disk.waiting) == 2
    node.node.work()
    for pending, codes in ((many, [0, 0]), (other, [0])):
        answer = node.read(pending, ProduceResponse, 2)
        assert list_codes(answer.responses[0].partition_responses) == codes
    assert len(node.workers.calls) == 3


def test_converted_messages_have_the_time_of_their_append() -> None:
    node = DataNode(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    pending = node.send(make_request(make_large()), 2)
    node.node.clock.advance(5)
    node.node.work()
    answer = node.read(pending, ProduceResponse, 2)
    assert answer.responses[0].partition_responses[0].log_append_time_ms == NOW_MS + 5000


def test_a_workers_refusal_fails_its_partition_alone() -> None:
    node = DataNode()
    responses = ask(node, make_request(make_large()[:-1] + b"x", make_messages()), 1)
    assert list_codes(responses) == [ErrorCode.CORRUPT_MESSAGE, 0]


def test_a_partition_that_is_deleted_meanwhile_takes_nothing() -> None:
    node = DataNode()
    pending = node.send(make_request(make_large()), 1)
    node.delete(topic("t", 2))
    answer = node.read(pending, ProduceResponse, 1)
    response = answer.responses[0].partition_responses[0]
    assert response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_without_acks_the_end_is_waited_for_too() -> None:
    node = DataNode()
    asked: ProduceRequest = make_request(make_large(), acks=0)
    pending = node.send(asked, 1)
    node.node.work()
    assert len(list_records(node)) == 3
    assert isinstance(pending, Pending)
    assert has_fired(pending.response)
