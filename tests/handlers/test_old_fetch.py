"""Fetch v0-3: message sets made of the log's batches."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafkacompat.conversion.service import IN_PLACE_BYTES
from kafkacompat.handlers.context import Pending
from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse, PartitionData
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.message_set import LegacyMessage, read_message_set, unwrap_messages
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.data_node import NOW_MS, DataNode, make_batch
from tests.handlers.test_fetch import ask, list_codes, make_partition, make_request
from tests.kafkacompat.metadata.deferreds import has_fired
from tests.kafkacompat.partitions.node import topic

GZIP, ZSTD = 1, 4
OLD = [0, 1, 2, 3]
LARGE = bytes(IN_PLACE_BYTES)

each_version = pytest.mark.parametrize("version", OLD)


def make_control_batch() -> bytes:
    return build_batch([(NOW_MS, bytes(4), bytes(6), [])], control=True)


def append_unchecked(node: DataNode, records: bytes, index: int = 0) -> None:
    """Append batches that clients may not write."""
    node.node.replicas.find("t", index).append(records, NOW_MS, from_client=False)


def list_partitions(response: FetchResponse) -> list[PartitionData]:
    return [partition for topic in response.responses for partition in topic.partitions]


def list_messages(part: PartitionData) -> list[LegacyMessage]:
    assert isinstance(part.records, (bytes, memoryview))
    return list(read_message_set(part.records))


def list_offsets(response: FetchResponse) -> list[list[int]]:
    return [[message.offset for message in list_messages(part)] for part in list_partitions(response)]


@each_version
def test_the_format_is_that_of_the_version(version: int) -> None:
    node = DataNode()
    node.append("t", 0, build_batch([(NOW_MS, b"k", b"v", [("h", b"x")])]))
    (partition,) = list_partitions(ask(node, make_request(make_partition()), version))
    magic = 1 if version >= 2 else 0
    assert list_messages(partition) == [LegacyMessage(0, magic, 0, NOW_MS if magic else -1, b"k", b"v")]
    assert (partition.error_code, partition.high_watermark) == (0, 1)


@each_version
def test_a_compressed_batch_is_one_wrapper(version: int) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(3, codec=GZIP))
    (partition,) = list_partitions(ask(node, make_request(make_partition(1)), version))
    (wrapper,) = list_messages(partition)
    assert (wrapper.offset, wrapper.codec) == (2, GZIP)
    assert len(list(unwrap_messages(wrapper, 1 << 20))) == 3
    assert node.workers.calls == ["down_convert"]


@each_version
def test_several_partitions_are_converted_each(version: int) -> None:
    node = DataNode()
    for index in (0, 1, 1):
        node.append("t", index)
    response = ask(node, make_request(make_partition(), make_partition(1, index=1), make_partition(index=7)), version)
    assert list_offsets(response)[:2] == [[0], [1]]
    assert list_codes(response) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_large_batches_are_converted_in_a_worker_into_a_file() -> None:
    node = DataNode()
    node.append("t", 0, make_batch(value=LARGE))
    before = node.node.files.open_handles
    pending = node.send(make_request(make_partition()), 2)
    assert isinstance(pending, Pending)
    assert pending.in_order
    assert not has_fired(pending.response)
    node.node.work()
    assert has_fired(pending.response)
    assert list_offsets(node.read(pending, FetchResponse, 2)) == [[0]]
    assert node.node.files.open_handles == before + 1  # kept for the next request
    assert list_offsets(ask(node, make_request(make_partition()), 2)) == [[0]]
    assert node.workers.calls == ["down_convert"]
    node.conversions.close()
    assert node.node.files.open_handles == before
    assert node.workers.closed


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_every_partition_gets_a_batch(version: int) -> None:
    node = DataNode()
    for index in (0, 1):
        node.append("t", index, make_batch(3))
    tiny = make_request(make_partition(partition_max_bytes=1), make_partition(index=1, partition_max_bytes=1))
    assert list_offsets(ask(node, tiny, version)) == [[0, 1, 2], [0, 1, 2]]
    assert list_offsets(ask(node, tiny, 3)) == [[0, 1, 2], []]


def test_converted_messages_may_exceed_the_records_up_to_the_partitions_limit() -> None:
    node = DataNode()
    for _ in range(5):
        node.append("t", 0, make_batch(50, value=b""))
    assert list_offsets(ask(node, make_request(make_partition()), 1)) == [list(range(250))]


# Nothing to convert


@each_version
def test_batches_without_messages_are_skipped(version: int) -> None:
    node = DataNode()
    for _ in range(3):
        append_unchecked(node, make_control_batch())
    node.append("t", 0)
    # Each read has one batch.
    assert list_offsets(ask(node, make_request(make_partition(partition_max_bytes=1)), version)) == [[3]]


@each_version
def test_a_fetch_waits_after_batches_without_messages(version: int) -> None:
    node = DataNode()
    append_unchecked(node, make_control_batch())
    pending = node.send(make_request(make_partition(), max_wait_ms=500), version)
    assert not has_fired(pending.response)
    node.append("t", 0)
    node.node.clock.advance(0)
    assert list_offsets(node.read(pending, FetchResponse, version)) == [[1]]


def test_a_fetch_without_messages_ends_at_its_deadline() -> None:
    node = DataNode()
    append_unchecked(node, make_control_batch())
    pending = node.send(make_request(make_partition(), max_wait_ms=500), 1)
    node.node.clock.advance(0.4)
    assert not has_fired(pending.response)
    node.node.clock.advance(0.1)
    (partition,) = list_partitions(node.read(pending, FetchResponse, 1))
    assert (partition.error_code, partition.records, partition.high_watermark) == (0, b"", 1)


# Errors


@each_version
def test_zstd_is_refused(version: int) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(codec=ZSTD))
    node.append("t", 1)
    response = ask(node, make_request(make_partition(), make_partition(index=1)), version)
    assert list_codes(response) == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0]
    assert list_offsets(response) == [[], [0]]


@pytest.mark.parametrize("version", [0, 3, 5, 6])
def test_before_version_6_a_failed_disk_looks_like_another_leader(version: int) -> None:
    node = DataNode()
    node.node.replicas.find("t", 0).log.take_offline("its disk failed")
    expected = ErrorCode.KAFKA_STORAGE_ERROR if version >= 6 else ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list_codes(ask(node, make_request(make_partition()), version)) == [expected]


@each_version
def test_an_offset_out_of_range_is_refused(version: int) -> None:
    (partition,) = list_partitions(ask(DataNode(), make_request(make_partition(5)), version))
    assert (partition.error_code, partition.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_file_that_cannot_be_read_or_written_is_an_error_of_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    for operation in ("pread", "open", "append"):
        node = DataNode()
        node.append("t", 0, make_batch(value=LARGE))
        handles = node.node.files.open_handles
        pending = node.send(make_request(make_partition()), 1)
        node.node.files.fail_on(operation, errno.EIO)
        node.node.work()
        assert list_codes(node.read(pending, FetchResponse, 1)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert node.node.files.open_handles == handles
        (line,) = caplog.messages
        assert line.startswith("t-0 cannot be converted: "), line
        caplog.clear()


def test_a_process_that_dies_is_an_error_of_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(value=LARGE))
    node.append("t", 1)

    convert = node.workers.call

    def die_once(*arguments: Any) -> Any:
        monkeypatch.setattr(node.workers, "call", convert)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "it died")

    monkeypatch.setattr(node.workers, "call", die_once)
    assert list_codes(ask(node, make_request(make_partition(), make_partition(index=1)), 1)) == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        0,
    ]


# Clients that leave


def send_and_leave(node: DataNode, asked: FetchRequest) -> Any:
    pending = node.send(asked, 1)
    assert pending.abandonable
    pending.response.addErrback(lambda _: None)
    pending.response.cancel()
    return pending


def test_a_client_that_leaves_during_a_conversion_leaves_no_open_files() -> None:
    node = DataNode()
    for index in (0, 1):
        node.append("t", index, make_batch(value=LARGE))
    handles = node.node.files.open_handles
    pending = send_and_leave(node, make_request(make_partition(), make_partition(index=1)))
    node.node.work()
    assert has_fired(pending.response)
    assert node.workers.calls == []
    assert node.node.files.open_handles == handles


def test_a_client_that_leaves_during_a_wait_leaves_no_watcher() -> None:
    node = DataNode()
    send_and_leave(node, make_request(make_partition(), max_wait_ms=500))
    assert not node.node.replicas.find("t", 0).watchers.read_uncommitted
    assert node.node.clock.getDelayedCalls() == []


def test_a_deleted_topic_ends_waiting_fetches() -> None:
    node = DataNode()
    pending = node.send(make_request(make_partition(), max_wait_ms=500), 1)
    node.delete(topic("t", 2))
    node.node.clock.advance(0)
    assert list_codes(node.read(pending, FetchResponse, 1)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
