"""OffsetDelete."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.group_node import GroupNode
from tests.kafkacompat.groups.support import GROUP, is_waiting

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def make_request(*partitions: tuple[str, int], group: str = GROUP) -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for topic, index in partitions
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def delete(node: GroupNode, *partitions: tuple[str, int], group: str = GROUP) -> list[int] | int:
    """The code of each partition, or that of the whole request."""
    response = node.ask(make_request(*partitions, group=group), OffsetDeleteResponse, 0)
    if response.error_code:
        assert not response.topics
        return response.error_code
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def test_offsets_are_deleted_here_and_in_the_log() -> None:
    node = GroupNode()
    node.world.commit(topic="t")
    node.world.commit(topic="u")
    assert delete(node, ("t", 0), ("t", 1), ("t", 0)) == [0, 0, 0]
    for world in (node.world, node.world.restarted()):
        assert (world.committed(topic="t"), world.committed(topic="u") >= 0) == (-1, True)


def test_absent_partitions_are_refused_beside_the_others() -> None:
    node = GroupNode()
    node.world.commit(topic="t")
    assert delete(node, ("t", 9), ("absent", 0), ("t", 0), ("t", -1)) == [UNKNOWN, UNKNOWN, 0, UNKNOWN]
    assert delete(node) == []


@pytest.mark.parametrize("group", ["", "absent"])
def test_a_group_that_does_not_exist(group: str) -> None:
    code = ErrorCode.GROUP_ID_NOT_FOUND if group else ErrorCode.INVALID_GROUP_ID
    assert delete(GroupNode(), ("t", 0), group=group) == delete(GroupNode(), group=group) == code


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    node = GroupNode()
    node.world.commit(topic="t")
    node.world.commit(topic="u")
    node.world.stable()
    assert delete(node, ("t", 0), ("u", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert (node.world.committed(topic="t") >= 0, node.world.committed(topic="u")) == (True, -1)


def test_members_that_do_not_consume_keep_all_offsets() -> None:
    node = GroupNode()
    node.world.commit(topic="t")
    node.world.stable(protocol_type="connect")
    assert delete(node, ("t", 0)) == ErrorCode.NON_EMPTY_GROUP


def test_a_commit_on_its_way_is_deleted_too() -> None:
    node = GroupNode()
    node.world.log.hold = True
    node.world.commit(topic="t")
    answer = node.send(make_request(("t", 0)), 0)
    assert is_waiting(answer)
    node.world.log.hold = False
    node.world.log.held.pop().succeed()
    assert node.read(answer, OffsetDeleteResponse, 0).error_code == 0
    assert node.world.committed(topic="t") == -1


def test_a_refused_append_is_reported_and_the_offset_stays() -> None:
    node = GroupNode()
    node.world.commit(topic="t")
    node.world.log.refuse_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert delete(node, ("t", 0)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.world.committed(topic="t") >= 0
