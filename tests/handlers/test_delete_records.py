"""DeleteRecords: where partitions begin now, or why not."""

from __future__ import annotations

import errno

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import DataNode, make_batch
from tests.kafkacompat.metadata.deferreds import has_fired


def make_request(*offsets: int, name: str = "t") -> DeleteRecordsRequest:
    """The first offset for partition 0, the next for 1, and so on."""
    wanted = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in enumerate(offsets)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=wanted)], timeout_ms=1000)


def ask(node: DataNode, asked: DeleteRecordsRequest, version: int = 2) -> list[tuple[int, int]]:
    response = node.ask(asked, DeleteRecordsResponse, version)
    return [
        (partition.error_code, partition.low_watermark) for topic in response.topics for partition in topic.partitions
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_delete_records_moves_the_log_start(version: int) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(3))
    node.append("t", 1, make_batch(4))
    assert ask(node, make_request(2, -1), version) == [(0, 2), (0, 4)]
    assert [node.node.replicas.find("t", index).log.log_start_offset for index in range(2)] == [2, 4]


@pytest.mark.parametrize("offset", [4, -2])
def test_an_offset_outside_the_log_is_refused_and_the_others_are_not(offset: int) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(3))
    node.append("t", 1, make_batch(3))
    assert ask(node, make_request(offset, 1)) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1), (0, 1)]


def test_delete_records_of_an_absent_partition_is_refused() -> None:
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert ask(DataNode(), make_request(0, name="absent")) == [unknown]
    assert ask(DataNode(), make_request(0, 0, 0)) == [(0, 0), (0, 0), unknown]


def test_internal_topics_are_left_alone() -> None:
    node = DataNode()
    node.append("__consumer_offsets", 0)
    assert ask(node, make_request(-1, name="__consumer_offsets")) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert node.node.replicas.find("__consumer_offsets", 0).log.log_start_offset == 0


def test_compacted_topics_are_refused_by_policy() -> None:
    node = DataNode(LogConfig(cleanup_policy=frozenset({"compact"})))
    node.append("t", 0)
    assert ask(node, make_request(1)) == [(ErrorCode.POLICY_VIOLATION, -1)]


def test_the_answer_waits_until_the_new_start_would_survive_a_crash() -> None:
    node = DataNode()
    node.append("t", 0, make_batch(3))
    pending = node.send(make_request(2), 2)
    assert isinstance(pending, Pending)
    assert not has_fired(pending.response)
    node.node.work()
    assert has_fired(pending.response)


@pytest.mark.parametrize(("error", "is_passing"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_a_start_that_cannot_be_written_is_reported_for_its_partition(error: int, is_passing: bool) -> None:
    node = DataNode()
    node.append("t", 0, make_batch(3))
    pending = node.send(make_request(2), 2)
    node.node.files.fail_on("open", error)
    node.node.work()
    response = node.read(pending, DeleteRecordsResponse, 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert response.topics[0].partitions[0].low_watermark == -1
    assert node.node.directories[0].offline is not is_passing
