"""The page of a group whose members are many."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.web import groups
from kafkacompat.wire.apis.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup


class LargeGroup:
    """Requests about a group with 1,000 members."""

    async def send(self, request: object, version: int | None = None) -> object:
        if isinstance(request, DescribeGroupsRequest):
            members = [DescribedGroupMember(member_id=str(number)) for number in range(1000)]
            return DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Stable", members=members)])
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])


def test_the_work_of_a_page_does_not_grow_with_the_members(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    read_member = groups._read_classic

    def read_and_count(member: Any) -> groups.Member:
        read.append(member)
        return read_member(member)

    monkeypatch.setattr(groups, "_read_classic", read_and_count)
    requests: Any = LargeGroup()
    describing = Deferred.fromCoroutine(groups.describe_group(requests, "g", 0, 1))
    details: Any = describing.result
    assert (len(read), len(details.members), details.group.members) == (200, 200, 1000)
    assert details.notes == ["200 of 1000 members are shown"]


def test_the_lag_of_a_group_is_not_known_without_that_of_each_partition() -> None:
    known = groups.CommittedOffset("t", 0, 3, "", end=5)
    assert groups.add_up_lag([known, known]) == 4
    assert groups.add_up_lag([known, groups.CommittedOffset("t", 1, 3, "")]) is None
