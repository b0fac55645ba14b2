"""To which broker a request goes, and what happens while coordinators move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkacompat.cli.remote.administration.group_listing import GroupListing
from kafkacompat.cli.remote.administration.group_members import MemberDescription, describe_group
from kafkacompat.cli.remote.administration.group_offsets import GroupPosition, read_share_offsets
from kafkacompat.cli.remote.cluster import COORDINATOR_ATTEMPTS, GROUP_KEY, TRANSACTION_KEY, RemoteCluster
from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.requests import NoResponseError
from kafkacompat.wire.apis import share_group_describe as share
from kafkacompat.wire.apis import streams_group_describe as streams
from kafkacompat.wire.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafkacompat.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request, Response

CONTROLLER, COORDINATOR = 2, 3
FIRST_PORT = 9090
Answers = dict[type[Request], Callable[[], Response]]


class FakeBrokers:
    """Brokers 1 to 3; requests to them are noted, and answered by the table *answers*."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, type[Request]]] = []
        self.open = 0
        self.down: set[int] = set()
        self.waited_s = 0.0
        self.not_yet = 0
        self.answers: Answers = {
            MetadataRequest: self._describe_brokers,
            FindCoordinatorRequest: self._find_coordinator,
            DeleteTopicsRequest: DeleteTopicsResponse,
            DeleteGroupsRequest: lambda: DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")]),
        }

    def connect(self, _host: str, port: int) -> FakeConnection:
        if port - FIRST_PORT in self.down:
            raise NoResponseError("Connection refused")
        self.open += 1
        return FakeConnection(self, port - FIRST_PORT)

    def wait(self, seconds: float) -> None:
        self.waited_s += seconds

    def make_cluster(self) -> RemoteCluster:
        return RemoteCluster([("kafka-1", FIRST_PORT + 1)], self.connect, self.wait)

    def _describe_brokers(self) -> Response:
        brokers = [MetadataResponseBroker(node_id=n, host=f"kafka-{n}", port=FIRST_PORT + n) for n in (1, 2, 3)]
        return MetadataResponse(brokers=brokers, controller_id=CONTROLLER)

    def _find_coordinator(self) -> Response:
        self.not_yet -= 1
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if self.not_yet >= 0 else ErrorCode.NONE
        coordinator = Coordinator(key="g", node_id=COORDINATOR, error_code=code, error_message=None)
        return FindCoordinatorResponse(coordinators=[coordinator])


class FakeConnection:
    """A connection to one of them."""

    def __init__(self, brokers: FakeBrokers, node_id: int) -> None:
        self._brokers = brokers
        self._node_id = node_id

    def find_version(self, request: type[Request]) -> int | None:
        return request.VERSIONS.last

    def request(self, request: Request, response: Any) -> Any:
        self._brokers.requests.append((self._node_id, type(request)))
        return self._brokers.answers[type(request)]()

    def close(self) -> None:
        self._brokers.open -= 1


def delete_group(cluster: RemoteCluster) -> int:
    """Send a request to a group's coordinator; return the code of its answer."""
    response = cluster.request_coordinator(
        "g", GROUP_KEY, DeleteGroupsRequest(), DeleteGroupsResponse, lambda answer: answer.results[0].error_code
    )
    return response.results[0].error_code


def test_changes_go_to_the_controller_and_group_requests_to_the_coordinator() -> None:
    brokers = FakeBrokers()
    with brokers.make_cluster() as cluster:
        cluster.request_controller(DeleteTopicsRequest(), DeleteTopicsResponse)
        cluster.request_controller(DeleteTopicsRequest(), DeleteTopicsResponse)
        assert delete_group(cluster) == 0
        assert brokers.open == 3
    assert brokers.requests == [
        (1, MetadataRequest),
        (CONTROLLER, DeleteTopicsRequest),
        (CONTROLLER, DeleteTopicsRequest),
        (1, FindCoordinatorRequest),
        (COORDINATOR, DeleteGroupsRequest),
    ]
    assert brokers.open == 0 and brokers.waited_s == 0


def test_a_coordinator_is_searched_once() -> None:
    brokers = FakeBrokers()
    cluster = brokers.make_cluster()
    assert cluster.find_coordinator("g", GROUP_KEY) == COORDINATOR
    assert delete_group(cluster) == delete_group(cluster) == 0
    assert [kind for _, kind in brokers.requests].count(FindCoordinatorRequest) == 1
    assert cluster.find_coordinator("g", TRANSACTION_KEY) == COORDINATOR
    assert [kind for _, kind in brokers.requests].count(FindCoordinatorRequest) == 2


def test_a_coordinator_that_is_not_there_yet_is_searched_again() -> None:
    brokers = FakeBrokers()
    brokers.not_yet = 3
    assert delete_group(brokers.make_cluster()) == 0
    assert brokers.waited_s == pytest.approx(0.6)


def test_a_coordinator_that_moves_is_searched_again() -> None:
    brokers = FakeBrokers()
    codes = iter([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE])
    brokers.answers[DeleteGroupsRequest] = lambda: DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id="g", error_code=next(codes))]
    )
    assert delete_group(brokers.make_cluster()) == 0
    assert sum(kind is FindCoordinatorRequest for _, kind in brokers.requests) == 3


def test_a_coordinator_that_never_comes_is_an_error() -> None:
    brokers = FakeBrokers()
    brokers.not_yet = 10 * COORDINATOR_ATTEMPTS
    with pytest.raises(RemoteError, match=r"^the coordinator of g is not found: COORDINATOR_NOT_AVAILABLE$"):
        delete_group(brokers.make_cluster())
    assert brokers.waited_s == pytest.approx(10)


def test_an_advertised_address_that_does_not_answer_is_named() -> None:
    brokers = FakeBrokers()
    brokers.down = {CONTROLLER}
    words = "broker 2 at its advertised address kafka-2:9092: Connection refused"
    with pytest.raises(NoResponseError, match=f"^{words}$"):
        brokers.make_cluster().request_controller(DeleteTopicsRequest(), DeleteTopicsResponse)
    with pytest.raises(NoResponseError, match=r"^broker 7 is not part of the cluster: see `kafkacompat brokers`$"):
        brokers.make_cluster().request_broker(7, DeleteTopicsRequest(), DeleteTopicsResponse)


def test_members_of_share_groups_and_their_offsets() -> None:
    brokers = FakeBrokers()
    assigned = [share.TopicPartitions(topic_name="orders", partitions=[1, 0])]
    member = share.Member(
        member_id="m", client_id="c", client_host="/h", assignment=share.Assignment(topic_partitions=assigned)
    )
    described = share.DescribedGroup(group_id="g", group_state="Stable", assignor_name="simple", members=[member])
    brokers.answers[share.ShareGroupDescribeRequest] = lambda: share.ShareGroupDescribeResponse(groups=[described])
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=0, start_offset=4, lag=6),
        DescribeShareGroupOffsetsResponsePartition(partition_index=1, start_offset=2),
        DescribeShareGroupOffsetsResponsePartition(partition_index=2, start_offset=-1),
    ]
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="orders", partitions=partitions)
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic])
    answer = DescribeShareGroupOffsetsResponse(groups=[group])
    brokers.answers[DescribeShareGroupOffsetsRequest] = lambda: answer
    cluster = brokers.make_cluster()
    description = describe_group(cluster, GroupListing("g", "share", "share", "Stable", COORDINATOR))
    assert description.members == [MemberDescription("m", None, "c", "/h", [("orders", 0), ("orders", 1)])]  # type: ignore[list-item]
    assert read_share_offsets(cluster, "g") == {("orders", 0): GroupPosition(4, 6), ("orders", 1): GroupPosition(2)}


def test_members_of_streams_groups_have_the_partitions_of_their_tasks() -> None:
    brokers = FakeBrokers()
    subtopology = streams.Subtopology(
        subtopology_id="0",
        source_topics=["orders"],
        repartition_source_topics=[streams.TopicInfo(name="by-customer")],
    )
    tasks = [streams.TaskIds(subtopology_id="0", partitions=[1]), streams.TaskIds(subtopology_id="9", partitions=[1])]
    member = streams.Member(
        member_id="m",
        instance_id="i",
        client_id="c",
        client_host="/h",
        assignment=streams.Assignment(active_tasks=tasks),
    )
    topology = streams.Topology(epoch=1, subtopologies=[subtopology])
    described = streams.DescribedGroup(group_id="g", group_state="Stable", topology=topology, members=[member])
    answer = streams.StreamsGroupDescribeResponse(groups=[described])
    brokers.answers[streams.StreamsGroupDescribeRequest] = lambda: answer
    listing = GroupListing("g", "streams", "streams", "Stable", COORDINATOR)
    description = describe_group(brokers.make_cluster(), listing)
    assert description.members == [
        MemberDescription("m", "i", "c", "/h", [("by-customer", 1), ("orders", 1)])  # type: ignore[list-item]
    ]
    described.topology = None
    assert describe_group(brokers.make_cluster(), listing).members[0].partitions == []
