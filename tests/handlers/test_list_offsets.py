"""ListOffsets: by time, by name, and by version."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.handlers.context import Pending
from kafkacompat.storage.producers.verification import NOT_VERIFIED
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.record_batch import build_batch
from tests.handlers.data_node import EPOCH, NOW_MS, DataNode, make_batch
from tests.kafkacompat.metadata.deferreds import has_fired

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)


def make_filled_node() -> DataNode:
    """t-0 with the offsets 2 to 5; the largest timestamp is that of 3."""
    node = DataNode()
    node.append("t", 0, make_batch(2))
    node.append("t", 0, make_batch(2, timestamp=NOW_MS + 100))
    node.append("t", 0, make_batch(2, timestamp=NOW_MS + 50))
    node.node.replicas.find("t", 0).log.trimmer.advance_log_start_offset(2)
    return node


def make_request(*timestamps: int, name: str = "t", index: int = 0, epoch: int = -1) -> ListOffsetsRequest:
    """Look-ups in one partition."""
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for timestamp in timestamps
    ]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=wanted)])


def ask(node: DataNode, asked: ListOffsetsRequest, version: int = 11) -> list[ListOffsetsPartitionResponse]:
    response = node.ask(asked, ListOffsetsResponse, version)
    return [partition for topic in response.topics for partition in topic.partitions]


def find_offset(node: DataNode, timestamp: int, version: int = 11) -> tuple[int, int, int, int]:
    (answer,) = ask(node, make_request(timestamp), version)
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "offset", "at"),
    [
        (LATEST, 6, -1),
        (EARLIEST, 2, -1),
        (EARLIEST_LOCAL, 2, -1),
        (MAX_TIMESTAMP, 3, NOW_MS + 101),
        (NOW_MS + 101, 3, NOW_MS + 101),
        (NOW_MS + 60, 2, NOW_MS + 100),
        (0, 2, NOW_MS + 100),
    ],
)
def test_places(timestamp: int, offset: int, at: int) -> None:
    assert find_offset(make_filled_node(), timestamp) == (0, offset, at, EPOCH)


@pytest.mark.parametrize("timestamp", [NOW_MS + 102, LATEST_TIERED, EARLIEST_PENDING])
def test_a_timestamp_after_all_records_has_no_offset(timestamp: int) -> None:
    assert find_offset(make_filled_node(), timestamp) == (0, -1, -1, -1)


def test_an_empty_partition() -> None:
    node = DataNode()
    assert [find_offset(node, timestamp)[:3] for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0)] == [
        (0, 0, -1),
        (0, 0, -1),
        (0, -1, -1),
        (0, -1, -1),
    ]


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING, 11)],
)
def test_a_place_that_a_version_does_not_know_is_refused(timestamp: int, since: int) -> None:
    node = make_filled_node()
    assert find_offset(node, timestamp, since)[0] == 0
    if since > 1:
        assert find_offset(node, timestamp, since - 1)[:3] == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)


def test_timestamp_minus_7_is_unsupported() -> None:
    assert find_offset(make_filled_node(), -7)[0] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [1, 4, 6, 11])
def test_a_partition_asked_for_twice_is_refused(version: int) -> None:
    node = make_filled_node()
    asked = make_request(LATEST, EARLIEST)
    asked.topics[0].partitions.append(ListOffsetsPartition(partition_index=1, timestamp=LATEST))
    answers = [(partition.partition_index, partition.error_code) for partition in ask(node, asked, version)]
    assert answers == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]
    apart = make_request(LATEST)
    apart.topics += make_request(EARLIEST).topics
    assert {partition.error_code for partition in ask(node, apart, version)} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(("name", "index"), [("absent", 0), ("t", 2)])
@pytest.mark.parametrize("timestamp", [LATEST, 0])
def test_list_offsets_of_an_absent_partition_is_refused(name: str, index: int, timestamp: int) -> None:
    (answer,) = ask(make_filled_node(), make_request(timestamp, name=name, index=index))
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(EPOCH, 0), (EPOCH - 1, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_epochs_are_compared_from_version_4(epoch: int, code: int) -> None:
    assert ask(make_filled_node(), make_request(LATEST, epoch=epoch), 4)[0].error_code == code
    assert ask(make_filled_node(), make_request(LATEST, epoch=epoch), 3)[0].error_code == 0


def test_a_search_by_time_waits_for_the_disk_without_holding_up_others() -> None:
    node = make_filled_node()
    asked = make_request(LATEST)
    asked.topics[0].partitions.append(ListOffsetsPartition(partition_index=1, timestamp=0))
    asked.topics.append(ListOffsetsTopic(name="u", partitions=[ListOffsetsPartition(timestamp=0)]))
    pending = node.send(asked, 11)
    assert isinstance(pending, Pending)
    assert not pending.in_order
    assert not has_fired(pending.response)
    node.node.work()
    response = node.read(pending, ListOffsetsResponse, 11)
    assert [[partition.offset for partition in topic.partitions] for topic in response.topics] == [[6, -1], [-1]]


def test_a_failed_search_fails_its_partition_alone() -> None:
    node = make_filled_node()
    node.append("t", 1)
    asked = make_request(0)
    asked.topics[0].partitions.append(ListOffsetsPartition(partition_index=1, timestamp=0))
    pending = node.send(asked, 11)
    node.node.replicas.find("t", 0).log.release()
    node.node.work()
    response = node.read(pending, ListOffsetsResponse, 11)
    assert [partition.error_code for partition in response.topics[0].partitions] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]


# Version 0: where segments begin


def roll_segments(node: DataNode) -> list[int]:
    """Make t-0 begin at 3, with segments at 0, 4 and 6, two seconds apart, and its end at 7; return these times."""
    written: list[int] = []
    partition = node.node.replicas.find("t", 0)
    for count in (4, 2, 1):
        if written:
            partition.roll()
            node.node.work()
        partition.append(make_batch(count), node.services.now_ms())
        written.append(node.services.now_ms())
        node.node.clock.advance(2)
    partition.log.trimmer.advance_log_start_offset(3)
    return written


def list_offsets(node: DataNode, timestamp: int, limit: int = 10, **where: Any) -> tuple[int, list[int]]:
    asked = make_request(timestamp, **where)
    asked.topics[0].partitions[0].max_num_offsets = limit
    (answer,) = ask(node, asked, 0)
    return answer.error_code, answer.old_style_offsets


def test_version_0_lists_segments_by_the_time_of_their_last_write() -> None:
    node = DataNode()
    first, second, third = roll_segments(node)
    assert list_offsets(node, LATEST) == (0, [7, 6, 4, 3])
    assert list_offsets(node, LATEST, 1) == (0, [7])
    assert list_offsets(node, LATEST, 2) == (0, [7, 6])
    assert list_offsets(node, EARLIEST) == (0, [3])
    assert list_offsets(node, LATEST, 0) == list_offsets(node, EARLIEST, 0) == (0, [])
    assert list_offsets(node, third + 2000) == (0, [7, 6, 4, 3])
    assert list_offsets(node, third) == (0, [6, 4, 3])
    assert list_offsets(node, third - 1) == list_offsets(node, second) == (0, [4, 3])
    assert list_offsets(node, first, 1) == (0, [3])
    assert list_offsets(node, first - 1) == list_offsets(node, 0) == (0, [])


def test_version_0_lists_the_start_of_an_empty_partition() -> None:
    node = DataNode()
    assert (
        list_offsets(node, LATEST)
        == list_offsets(node, EARLIEST)
        == list_offsets(node, node.services.now_ms())
        == (0, [0])
    )
    assert list_offsets(node, 0) == (0, [])


def test_version_0_refuses_a_partition_that_is_asked_for_twice() -> None:
    """A small request could get a large answer by asking for one of many segments over and over."""
    answers = ask(make_filled_node(), make_request(LATEST, LATEST), 0)
    assert [(answer.error_code, answer.old_style_offsets) for answer in answers] == [
        (ErrorCode.INVALID_REQUEST, [])
    ] * 2


@pytest.mark.parametrize(
    ("timestamp", "limit", "where", "code"),
    [
        (-3, 1, {}, ErrorCode.UNSUPPORTED_VERSION),
        (LATEST, -1, {}, ErrorCode.INVALID_REQUEST),
        (LATEST, 1, {"name": "absent"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (EARLIEST, 1, {"index": 2}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_version_0_refuses(timestamp: int, limit: int, where: dict[str, Any], code: ErrorCode) -> None:
    assert list_offsets(make_filled_node(), timestamp, limit, **where) == (code, [])


def test_version_0_says_that_a_log_is_offline() -> None:
    node = make_filled_node()
    node.node.replicas.find("t", 0).log.take_offline("its disk failed")
    assert list_offsets(node, LATEST) == (ErrorCode.KAFKA_STORAGE_ERROR, [])


@pytest.mark.parametrize(("isolation_level", "offsets"), [(0, [7, 6, 6]), (1, [6, -1, -1])])
def test_readers_of_committed_records_find_nothing_that_is_undecided(isolation_level: int, offsets: list[int]) -> None:
    node = make_filled_node()
    record: Any = (NOW_MS + 200, b"k", b"v", ())
    sent = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    node.node.replicas.find("t", 0).append(sent, NOW_MS, guard=NOT_VERIFIED)
    for timestamp, offset in zip((LATEST, NOW_MS + 200, MAX_TIMESTAMP), offsets, strict=True):
        asked = make_request(timestamp)
        asked.isolation_level = isolation_level
        assert [partition.offset for partition in ask(node, asked)] == [offset]
