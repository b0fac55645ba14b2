"""Offsets, epochs and deletions of a partition with three replicas."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import EPOCH, NOW_MS
from tests.handlers.replicated_node import LEADER_EPOCH, ReplicatedNode
from tests.kafkacompat.metadata.deferreds import has_fired

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
CONSUMER, DEBUGGER = -1, -2


def make_lagging_leader() -> ReplicatedNode:
    """A new leader of three records, whose high watermark is 1; the epoch begins at 3."""
    node = ReplicatedNode()
    node.write(3)
    for replica in (2, 3):
        node.fetch(1, replica=replica)
    node.follow(2, LEADER_EPOCH + 1)
    assert node.lead(epoch=LEADER_EPOCH + 2, partition_epoch=3)
    return node


def list_offset(node: ReplicatedNode, timestamp: int, *, replica: int = CONSUMER, version: int = 7) -> tuple[int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    asked = ListOffsetsRequest(replica_id=replica, topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    (answer,) = node.ask(asked, ListOffsetsResponse, version).topics[0].partitions
    return answer.error_code, answer.offset


@pytest.mark.parametrize(
    ("timestamp", "replica", "version", "answer"),
    [
        (LATEST, CONSUMER, 5, (ErrorCode.OFFSET_NOT_AVAILABLE, -1)),
        (LATEST, CONSUMER, 4, (ErrorCode.LEADER_NOT_AVAILABLE, -1)),
        (NOW_MS + 1, CONSUMER, 5, (ErrorCode.OFFSET_NOT_AVAILABLE, -1)),
        (NOW_MS, CONSUMER, 5, (0, 0)),
        (EARLIEST, CONSUMER, 5, (0, 0)),
        (LATEST, 2, 5, (0, 3)),
        (LATEST, DEBUGGER, 5, (0, 3)),
    ],
)
def test_a_new_leader_returns_no_end_that_may_go_back(
    timestamp: int, replica: int, version: int, answer: tuple[int, int]
) -> None:
    assert list_offset(make_lagging_leader(), timestamp, replica=replica, version=version) == answer


def test_the_end_is_returned_once_the_high_watermark_reaches_the_epochs_start() -> None:
    node = make_lagging_leader()
    for replica in (2, 3):
        node.fetch(3, replica=replica, epoch=LEADER_EPOCH + 2)
    assert list_offset(node, LATEST) == (0, 3)
    assert list_offset(node, NOW_MS + 1) == (0, -1)
    node.write()
    assert list_offset(node, LATEST) == (0, 3)


@pytest.mark.parametrize("version", [0, 1, 7])
def test_a_follower_lists_offsets_for_debugging_only(version: int) -> None:
    node = ReplicatedNode()
    node.write(2)
    node.follow()
    assert list_offset(node, EARLIEST, version=version)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version:
        assert list_offset(node, LATEST, replica=DEBUGGER, version=version) == (0, 2)


def find_end(node: ReplicatedNode, epoch: int, *, current: int = -1) -> tuple[int, int, int]:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    asked = OffsetForLeaderEpochRequest(replica_id=2, topics=[OffsetForLeaderTopic(topic="t", partitions=[wanted])])
    (answer,) = node.ask(asked, OffsetForLeaderEpochResponse, 4).topics[0].partitions
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_replicas_learn_where_epochs_end_beyond_the_high_watermark() -> None:
    node = make_lagging_leader()
    current = LEADER_EPOCH + 2
    assert find_end(node, LEADER_EPOCH, current=current) == (0, LEADER_EPOCH, 3)
    assert find_end(node, LEADER_EPOCH + 1, current=current) == (0, LEADER_EPOCH, 3)
    node.write()
    assert find_end(node, current, current=current) == (0, current, 4)
    assert find_end(node, EPOCH, current=LEADER_EPOCH) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)


def test_a_follower_does_not_say_where_epochs_end() -> None:
    node = ReplicatedNode()
    node.follow()
    assert find_end(node, LEADER_EPOCH) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)


# DeleteRecords


def make_delete_request(offset: int = 2) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[wanted])], timeout_ms=1000)


def make_replicated_leader() -> ReplicatedNode:
    """Three records that all replicas have."""
    node = ReplicatedNode()
    node.write(3)
    for replica in (2, 3):
        node.fetch(3, replica=replica)
    return node


def read_deletion(node: ReplicatedNode, sent: object) -> tuple[int, int]:
    (answer,) = node.read(sent, DeleteRecordsResponse, 2).topics[0].partitions
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("offset", [2, -1])
def test_records_are_deleted_when_all_live_replicas_have_deleted_them(offset: int) -> None:
    node = make_replicated_leader()
    start = 3 if offset < 0 else offset
    sent = node.send(make_delete_request(offset), 2)
    node.node.work()
    node.fetch(3, replica=2, log_start_offset=start)
    assert not has_fired(sent.response)
    assert node.fetch(3, replica=3, log_start_offset=0).log_start_offset == start
    node.fetch(3, replica=3, log_start_offset=start)
    assert read_deletion(node, sent) == (0, start)
    assert node.node.clock.getDelayedCalls() == []


def test_a_dead_replica_is_not_waited_for() -> None:
    node = make_replicated_leader()
    sent = node.send(make_delete_request(), 2)
    node.node.work()
    node.fetch(3, replica=2, log_start_offset=2)
    del node.broker_epochs[3]
    node.partition.check_in_sync(node.node.now_ms)
    assert read_deletion(node, sent) == (0, 2)


def test_a_deletion_that_takes_too_long_times_out() -> None:
    node = make_replicated_leader()
    sent = node.send(make_delete_request(), 2)
    node.node.work()
    node.node.clock.advance(1.1)
    assert read_deletion(node, sent) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert node.partition.log.log_start_offset == 2


def test_a_deletion_that_waits_is_refused_with_the_leadership() -> None:
    node = make_replicated_leader()
    sent = node.send(make_delete_request(), 2)
    node.node.work()
    node.follow()
    assert read_deletion(node, sent) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert read_deletion(node, node.send(make_delete_request(), 2)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
