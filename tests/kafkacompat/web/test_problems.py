"""The page of partitions with problems, when these are many."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.web.topics import MAX_PROBLEMS, ProblemPage, list_problems
from kafkacompat.wire.apis.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


class LeaderlessTopic:
    """Requests about one topic, whose partitions have no leaders."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    async def send(self, request: object) -> DescribeTopicPartitionsResponse:
        partitions = [
            DescribeTopicPartitionsResponsePartition(partition_index=index, leader_id=-1)
            for index in range(self._partitions)
        ]
        return DescribeTopicPartitionsResponse(
            topics=[DescribeTopicPartitionsResponseTopic(name="t", partitions=partitions)]
        )


@pytest.mark.parametrize(
    ("count", "shown", "is_cut"),
    [(99, 99, False), (MAX_PROBLEMS, MAX_PROBLEMS, False), (MAX_PROBLEMS + 1, MAX_PROBLEMS, True)],
)
def test_a_page_is_cut_only_if_partitions_are_missing(count: int, shown: int, is_cut: bool) -> None:
    requests: Any = LeaderlessTopic(count)
    page: Any = Deferred.fromCoroutine(list_problems(requests, "")).result
    assert isinstance(page, ProblemPage)
    assert (len(page.partitions), page.is_cut) == (shown, is_cut)
