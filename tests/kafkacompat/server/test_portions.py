"""Requests about very many things: they are answered as a whole, and nobody else waits for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.portions import DIVISIBLE, PORTION, DivisibleRequest, answer_in_portions
from kafkacompat.tenancy.whitelists import TopicWhitelists
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkacompat.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kafkacompat.wire.compile_source import STEP_ELEMENTS
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.connection import RequestError, ServerConnection
from kafkacompat.wire.headers import RequestHeader
from kafkacompat.wire.schema import Struct
from tests.fakes.busy_clock import LOOKS_A_TURN, BusyClock
from tests.handlers.node import context_of
from tests.kafkacompat.metadata.deferreds import has_fired, outcome

WAYS = [(key, way) for key, ways in DIVISIBLE.items() for way in ways]
MANY = 3 * PORTION + 7


def answer_whole(request: Any, handle: Callable[[Any], Any]) -> Any:
    """The answer after all turns that it takes."""
    clock = BusyClock()
    pending = answer_in_portions(request, handle, clock)
    assert pending is not None and pending.in_order
    clock.turns()
    return outcome(pending.response)


def make_response(request: Any) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=partition.partition_index % 7
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def make_request(*counts: int) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            name=f"t{number}",
            partitions=[OffsetCommitRequestPartition(partition_index=index) for index in range(count)],
        )
        for number, count in enumerate(counts)
    ]
    return OffsetCommitRequest(group_id="g", topics=topics)


@pytest.mark.parametrize("counts", [(MANY,), (1, MANY, 0, 2), (PORTION, PORTION), (1,) * MANY, (0,) * MANY])
def test_the_answer_is_the_same_as_to_the_whole(counts: Sequence[int]) -> None:
    sizes = []

    def handle(portion: OffsetCommitRequest) -> OffsetCommitResponse:
        assert portion.group_id == "g"
        sizes.append(sum(len(topic.partitions) or 1 for topic in portion.topics))
        return make_response(portion)

    request = make_request(*counts)
    assert answer_whole(request, handle) == make_response(request)
    assert max(sizes) <= PORTION
    assert request == make_request(*counts)


def test_a_few_are_left_as_they_are() -> None:
    assert answer_in_portions(make_request(PORTION), make_response, BusyClock()) is None
    assert answer_in_portions(DescribeGroupsRequest(), lambda _: None, BusyClock()) is None


def test_an_answer_may_take_its_time() -> None:
    waiting: list[Pending[Any]] = []

    def handle(portion: object) -> Pending[Any]:
        waiting.append(Pending(Deferred()))
        return waiting[-1]

    clock = BusyClock()
    pending = answer_in_portions(make_request(PORTION + 1), handle, clock)
    assert pending is not None
    for number in range(2):
        assert not has_fired(pending.response)
        clock.turns()
        waiting[number].response.callback(make_response(make_request(1)))
        clock.turns()
    assert has_fired(pending.response)


def test_an_error_of_the_whole_request_is_the_only_answer() -> None:
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in range(MANY)]
    request = OffsetDeleteRequest(topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)])
    assert answer_whole(request, lambda _: OffsetDeleteResponse(error_code=69)) == OffsetDeleteResponse(error_code=69)


def test_an_item_named_in_several_portions_is_handled_once() -> None:
    """A group of a thousand members is described once, not for each portion of a request that says nothing else."""
    asked: list[str] = []

    def handle(portion: DescribeGroupsRequest) -> DescribeGroupsResponse:
        asked.extend(portion.groups)
        return DescribeGroupsResponse(groups=[DescribedGroup(group_id=group) for group in portion.groups])

    request = DescribeGroupsRequest(groups=["a", "b"] * MANY + ["c"])
    assert [group.group_id for group in answer_whole(request, handle).groups] == ["a", "b", "c"]
    assert asked == ["a", "b", "c"]


def test_a_group_that_is_cut_is_one_again() -> None:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[*range(MANY), *range(MANY)])]
    everything = OffsetFetchRequestGroup(group_id="all", topics=None)
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics), everything, everything]
    asked: list[Any] = []

    def handle(portion: OffsetFetchRequest) -> OffsetFetchResponse:
        for group in portion.groups:
            asked.extend([group.group_id] if group.topics is None else group.topics[0].partition_indexes)
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id=wanted.group_id) for wanted in portion.groups]
        )

    answer = answer_whole(OffsetFetchRequest(groups=groups), handle)
    assert [group.group_id for group in answer.groups] == ["g", "all"]
    assert asked == [*range(MANY), "all"]


def list_kinds(message: type[Struct], path: Sequence[str]) -> Iterator[str]:
    """The kinds of the fields on the way."""
    for name in path:
        field = message.FIELDS[name]
        yield field.kind
        assert field.element is not None
        message = field.element.struct or Struct


@pytest.mark.parametrize(("key", "way"), WAYS)
def test_the_lists_are_declared(key: int, way: DivisibleRequest) -> None:
    messages = find_api(key)
    assert {*list_kinds(messages.request, way.asked), *list_kinds(messages.response, way.answered)} == {"array"}


# The dispatcher, which reads large requests and hands them on in portions


class DescribingGroups:
    """Serves DescribeGroups, and notes how many it was asked for at once."""

    api_key = 15
    request, response = find_api(15)
    versions = request.VERSIONS

    def __init__(self) -> None:
        self.asked: list[int] = []

    def handle(self, request: DescribeGroupsRequest, context: object, services: object) -> DescribeGroupsResponse:
        self.asked.append(len(request.groups))
        return DescribeGroupsResponse(groups=[DescribedGroup(group_id=group) for group in request.groups])


def make_frame(content: bytes) -> memoryview:
    return memoryview(encode_message(RequestHeader(request_api_key=15, client_id="c"), 1) + content)


def dispatch_frame(handler: DescribingGroups, data: memoryview) -> tuple[BusyClock, Any]:
    clock = BusyClock()
    handlers: Any = {15: handler}
    services: Any = SimpleNamespace(clock=clock, cluster=None, authorizer=None, whitelists=TopicWhitelists())
    incoming = ServerConnection(handlers).parse(data)
    return clock, Dispatcher(handlers, services).dispatch(incoming, context_of(0))


def test_a_large_request_is_read_and_handled_in_many_turns() -> None:
    groups = [f"group-{number}" for number in range(MANY)]
    handler = DescribingGroups()
    clock, pending = dispatch_frame(handler, make_frame(encode_message(DescribeGroupsRequest(groups=groups), 0)))
    assert pending.in_order and handler.asked == []
    assert clock.turns() > MANY / STEP_ELEMENTS / LOOKS_A_TURN
    assert handler.asked == [PORTION, PORTION, PORTION, MANY - 3 * PORTION]
    assert [group.group_id for group in outcome(pending.response).groups] == groups


def test_a_large_request_that_cannot_be_read_closes_the_connection() -> None:
    handler = DescribingGroups()
    clock, pending = dispatch_frame(
        handler, make_frame(encode_message(DescribeGroupsRequest(groups=["group"] * MANY), 0)[:-1])
    )
    clock.turns()
    with pytest.raises(RequestError, match="ends at byte"):
        outcome(pending.response)
    assert handler.asked == []
