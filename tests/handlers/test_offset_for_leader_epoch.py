"""OffsetForLeaderEpoch: where epochs ended."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import EPOCH, NOW_MS, DataNode, make_batch


def make_filled_node() -> DataNode:
    """t-0 with the epoch EPOCH up to offset 2, and EPOCH + 4 from there to 5."""
    node = DataNode()
    partition = node.node.replicas.find("t", 0)
    partition.append(make_batch(2), NOW_MS)
    partition.state.leader_epoch = EPOCH + 4
    partition.append(make_batch(3), NOW_MS)
    return node


def ask(
    node: DataNode, epoch: int, version: int = 4, *, name: str = "t", index: int = 0, current: int = -1
) -> tuple[int, int, int]:
    wanted = OffsetForLeaderPartition(partition=index, leader_epoch=epoch, current_leader_epoch=current)
    asked = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=[wanted])])
    response = node.ask(asked, OffsetForLeaderEpochResponse, version)
    assert response.topics[0].topic == name
    (answer,) = response.topics[0].partitions
    assert answer.partition == index
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (EPOCH, (EPOCH, 2)),
        (EPOCH + 2, (EPOCH, 2)),
        (EPOCH + 4, (EPOCH + 4, 5)),
        (EPOCH + 5, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(version: int, epoch: int, answer: tuple[int, int]) -> None:
    assert ask(make_filled_node(), epoch, version) == (0, *answer)


@pytest.mark.parametrize(("version", "leader_epoch"), [(0, -1), (1, EPOCH)])
def test_the_epoch_that_ends_is_named_from_version_1(version: int, leader_epoch: int) -> None:
    assert ask(make_filled_node(), EPOCH + 2, version) == (0, leader_epoch, 2)


def test_versions_0_and_1_know_no_epoch_of_their_own() -> None:
    assert ask(make_filled_node(), EPOCH, 1, current=EPOCH + 9) == ask(make_filled_node(), EPOCH, 1)


@pytest.mark.parametrize(("name", "index"), [("absent", 0), ("t", 2)])
def test_an_absent_partition_is_unknown(name: str, index: int) -> None:
    answer = ask(make_filled_node(), EPOCH, name=name, index=index)
    assert answer == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


@pytest.mark.parametrize(
    ("current", "code"),
    [(EPOCH + 3, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 5, ErrorCode.UNKNOWN_LEADER_EPOCH), (EPOCH + 4, 0)],
)
def test_the_current_epoch_is_compared(current: int, code: int) -> None:
    answer = ask(make_filled_node(), EPOCH, 2, current=current)
    assert answer == ((code, -1, -1) if code else (0, EPOCH, 2))


def test_an_epoch_ends_where_consumers_may_read_no_further() -> None:
    node = DataNode(syncs_always=True)
    partition = node.node.replicas.find("t", 0)
    partition.append(make_batch(2), NOW_MS)
    assert ask(node, partition.leader_epoch) == (0, partition.leader_epoch, 0)
    node.node.sync()
    assert ask(node, partition.leader_epoch) == (0, partition.leader_epoch, 2)
