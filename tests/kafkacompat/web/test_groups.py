"""The page of a group whose members are many."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.web import groups
from kafkacompat.wire.apis.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkacompat.wire.apis.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


class LargeGroup:
    """Requests about a group with 1,000 members, and with this many offsets of a topic that no broker has."""

    def __init__(self, offsets: int = 0) -> None:
        self._offsets = offsets

    async def send(self, request: object, version: int | None = None) -> object:
        if isinstance(request, DescribeGroupsRequest):
            members = [DescribedGroupMember(member_id=str(number)) for number in range(1000)]
            return DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Stable", members=members)])
        if isinstance(request, DescribeTopicPartitionsRequest):
            return DescribeTopicPartitionsResponse()
        partitions = [
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=index)
            for index in reversed(range(self._offsets))
        ]
        topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])


def describe(requests: Any, number: int = 0) -> groups.GroupDetails:
    """Return a page of a group, for which the clock has as many turns as it takes."""
    clock = Clock()
    describing = Deferred.fromCoroutine(groups.describe_group(requests, clock, "g", number, 1))
    while not describing.called:
        clock.advance(0)
    details: Any = describing.result
    assert isinstance(details, groups.GroupDetails)
    return details


@pytest.mark.parametrize(
    ("count", "number", "shown", "has_next"),
    [
        (199, 0, range(199), False),
        (200, 0, range(200), False),
        (201, 0, range(200), True),
        (400, 1, range(200, 400), False),
        (10_000, 10, range(2000, 2200), True),
    ],
)
def test_pages_of_offsets_are_in_order(count: int, number: int, shown: range, has_next: bool) -> None:
    details = describe(LargeGroup(count), number)
    assert [offset.partition for offset in details.offsets] == list(shown)
    assert details.has_next is has_next


def test_the_work_of_a_page_does_not_grow_with_the_members(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    read_member = groups._read_classic

    def read_and_count(member: Any) -> groups.Member:
        read.append(member)
        return read_member(member)

    monkeypatch.setattr(groups, "_read_classic", read_and_count)
    requests: Any = LargeGroup()
    details = describe(requests)
    assert (len(read), len(details.members), details.group.members) == (200, 200, 1000)
    assert details.notes == ["200 of 1000 members are shown"]


def test_the_lag_of_a_group_is_not_known_without_that_of_each_partition() -> None:
    known = groups.CommittedOffsetRow("t", 0, 3, "", end=5)
    assert groups.add_up_lag([known, known]) == 4
    assert groups.add_up_lag([known, groups.CommittedOffsetRow("t", 1, 3, "")]) is None
