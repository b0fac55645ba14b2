"""DescribeTopicPartitions: pages, cursors and refusals."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode

Page = tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]


@pytest.fixture
def node() -> AdminNode:
    node = AdminNode()
    node.make_topic("b", 3)
    node.make_topic("a")
    return node


def ask(
    node: AdminNode, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return node.ask(request, DescribeTopicPartitionsResponse, 0)


def read_page(response: DescribeTopicPartitionsResponse) -> Page:
    topics = [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in response.topics]
    following = response.next_cursor
    return topics, None if following is None else (following.topic_name, following.partition_index)


def test_topics_are_sorted(node: AdminNode) -> None:
    response = ask(node, ["b", "a"])
    assert read_page(response) == ([("a", [0]), ("b", [0, 1, 2])], None)
    first = response.topics[0]
    assert first.topic_id == node.holder.image.topics["a"].topic_id
    assert (first.error_code, first.is_internal, first.topic_authorized_operations) == (0, False, 3576)
    assert first.partitions == [
        DescribeTopicPartitionsResponsePartition(
            partition_index=0,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=[1],
            isr_nodes=[1],
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=[],
        )
    ]


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "expected"),
    [
        (["a", "b"], 3, None, ([("a", [0]), ("b", [0, 1])], ("b", 2))),
        (["a", "b"], 3, ("b", 2), ([("b", [2])], None)),
        (["a", "b"], 1, None, ([("a", [0])], ("b", 0))),
        (["b"], 0, None, ([("b", [0])], ("b", 1))),
        (["b"], -5, None, ([("b", [0])], ("b", 1))),
        (["b"], 9, ("b", 99), ([("b", [])], None)),
        ([], 2, None, ([("a", [0]), ("b", [0])], ("b", 1))),
        ([], 9, ("a0", 7), ([("b", [0, 1, 2])], None)),
    ],
)
def test_pages(node: AdminNode, names: list[str], limit: int, cursor: tuple[str, int] | None, expected: Page) -> None:
    assert read_page(ask(node, names, limit, cursor)) == expected


def test_the_broker_bounds_a_page() -> None:
    node = AdminNode(max_request_partition_size_limit="2")
    node.make_topic("a", 3)
    assert read_page(ask(node, ["a"])) == ([("a", [0, 1])], ("a", 2))


def test_unknown_topics_are_listed_and_do_not_count(node: AdminNode) -> None:
    response = ask(node, ["nope", "b", "a b"], 1)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("b", 0),
    ]
    assert ask(node, ["nope"]).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("cursor", [("other", 0), ("a", -1)])
def test_a_bad_cursor_is_refused(node: AdminNode, cursor: tuple[str, int]) -> None:
    response = ask(node, ["a", "b"], cursor=cursor)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_partition_that_takes_no_writes_has_no_leader() -> None:
    node = AdminNode()
    node.events.broken = {"a"}
    node.make_topic("a")
    assert ask(node, ["a"]).topics[0].partitions[0].leader_id == -1
