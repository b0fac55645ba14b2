"""The offsets at which reading starts and ends."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.positions import (
    Span,
    Start,
    StartKind,
    choose_partitions,
    find_spans,
    read_partitions,
)
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkacompat.wire.apis.metadata import MetadataResponsePartition, MetadataResponseTopic
from kafkacompat.wire.errors import ErrorCode

LEADERS = {0: 1, 1: 2, 2: 1}
LOGS = {0: (10, 100), 1: (0, 5), 2: (7, 7)}
"""First and next offset of each partition, whose records have their offset as their time."""


class StubCluster:
    """A cluster with one topic `t` of LOGS."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, ListOffsetsRequest]] = []
        self.error = ErrorCode.NONE

    def read_topics(self, names: list[str] | None = None) -> list[MetadataResponseTopic]:
        code = ErrorCode.NONE if names is None or names == ["t"] else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = [MetadataResponsePartition(partition_index=part, leader_id=node) for part, node in LEADERS.items()]
        return [MetadataResponseTopic(name=(names or ["t"])[0], error_code=code or self.error, partitions=partitions)]

    def request_broker(self, node_id: int, request: ListOffsetsRequest, _: Any) -> ListOffsetsResponse:
        self.requests.append((node_id, request))
        results = [self._look_up(part.partition_index, part.timestamp) for part in request.topics[0].partitions]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=results)])

    def _look_up(self, partition: int, timestamp: int) -> ListOffsetsPartitionResponse:
        begin, end = LOGS[partition]
        special = {-1: end, -2: begin}
        offset = special.get(timestamp, timestamp if begin <= timestamp < end else -1)
        return ListOffsetsPartitionResponse(partition_index=partition, offset=offset, error_code=self.error)


def find(start: Start) -> dict[int, Span]:
    cluster: Any = StubCluster()
    spans = find_spans(cluster, "t", LEADERS, start, 1)
    assert {node for node, _ in cluster.requests} == {1, 2}
    assert {request.isolation_level for _, request in cluster.requests} == {1}
    return spans


@pytest.mark.parametrize(
    ("start", "starts"),
    [
        (Start(StartKind.EARLIEST), [10, 0, 7]),
        (Start(StartKind.LATEST), [100, 5, 7]),
        (Start(StartKind.OFFSET, 20), [20, 5, 7]),
        (Start(StartKind.OFFSET, 0), [10, 0, 7]),
        (Start(StartKind.LAST, 3), [97, 2, 7]),
        (Start(StartKind.LAST, 10**18), [10, 0, 7]),
        (Start(StartKind.TIMESTAMP, 50), [50, 5, 7]),
    ],
)
def test_a_start_lies_within_each_partition(start: Start, starts: list[int]) -> None:
    assert find(start) == {part: Span(begin, LOGS[part][1]) for part, begin in enumerate(starts)}


def test_a_topic_that_is_not_there_is_named_with_its_neighbour() -> None:
    cluster: Any = StubCluster()
    assert read_partitions(cluster, "t") == LEADERS
    with pytest.raises(
        RemoteError, match=r"^there is no topic tt \(did you mean t\?\): see `kafkacompat topics list`$"
    ):
        read_partitions(cluster, "tt")
    cluster.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(RemoteError, match="topic t cannot be read: the user of --command-config lacks the right"):
        read_partitions(cluster, "t")


def test_partitions_that_cannot_be_read() -> None:
    assert choose_partitions("t", LEADERS, [2, 0, 2]) == {0: 1, 2: 1}
    assert choose_partitions("t", LEADERS, []) == LEADERS
    with pytest.raises(OptionError, match="--partition 3: topic t has the partitions 0 to 2"):
        choose_partitions("t", LEADERS, [3])
    with pytest.raises(RemoteError, match="partition 1 of t has no leader"):
        choose_partitions("t", {0: 1, 1: -1}, [])


def test_a_refused_look_up_names_the_partition() -> None:
    cluster: Any = StubCluster()
    cluster.error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(RemoteError, match="the leader of partition 0 of t returns no offset: try again"):
        find_spans(cluster, "t", LEADERS, Start(StartKind.EARLIEST), 0)
