"""Answers of a broker in a cluster that differ from those of a single node."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kafkacompat.cluster.decisions.leader_balance import ElectionType
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Pending
from kafkacompat.handlers.describe_cluster import handle_describe_cluster
from kafkacompat.handlers.leader_hints import LeaderHints
from kafkacompat.metadata.image import NO_LEADER, BrokerImage, MetadataImage, PartitionImage, TopicImage
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request
from tests.fakes.cluster_role import FakeController, FakeLink, FakeRole
from tests.handlers.admin_node import AdminNode
from tests.handlers.node import context_of, reread_response
from tests.kafkacompat.metadata.deferreds import has_fired, outcome

T_ID = b"t" * 16
UNKNOWN = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")


class Member:
    """Broker 1 of three: 2 has no address on PLAINTEXT, 3 is down. Broker 1 is the controller by default."""

    def __init__(self, *, is_controller: bool = True) -> None:
        self.node = AdminNode()
        self.clock = self.node.services.clock
        assert isinstance(self.clock, Clock)
        brokers = {
            1: BrokerImage(1, "r1", {"PLAINTEXT": ("host-1", 9092), "INTERNAL": ("host-1", 9093)}),
            2: BrokerImage(2, None, {"INTERNAL": ("host-2", 9093)}),
        }
        partitions = (
            PartitionImage(0, 1, 7, (1, 2, 3), (1, 2), 1, adding_replicas=(3,), offline_replicas=(3,)),
            PartitionImage(1, 2, 8, (2, 1), (2, 1), 1),
            PartitionImage(2, 3, 9, (3, 1), (3,), 1),
            PartitionImage(3, NO_LEADER, 9, (2,), (2,), 1, offline_replicas=(2,)),
        )
        image = self.node.holder.image
        self.image = image.with_topics({"t": TopicImage("t", T_ID, partitions)})
        object.__setattr__(self.image, "brokers", brokers)
        object.__setattr__(self.image, "controller_id", 2)
        self.node.holder.publish(self.image)
        self.active = FakeController(self.image)
        self.role = FakeRole(FakeLink(), self.active if is_controller else None)
        self.node.services.cluster = self.role

    def start(self, request: Request, version: int) -> Any:
        return self.node.send(request, version)

    def ask(self, request: Request, version: int) -> Any:
        return self.node.ask(request, find_api(request.API_KEY).response, version)


@pytest.fixture
def member() -> Member:
    return Member()


# Brokers and leaders


def describe(member: Member, version: int) -> tuple[list[tuple[int, str, int]], dict[int, tuple[int, int]]]:
    """The brokers, and the error and the leader of each partition."""
    response: MetadataResponse = member.ask(MetadataRequest(topics=None if version else []), version)
    (topic,) = response.topics
    partitions = {
        partition.partition_index: (partition.error_code, partition.leader_id) for partition in topic.partitions
    }
    assert response.controller_id == (2 if version else -1)
    return [(broker.node_id, broker.host, broker.port) for broker in response.brokers], partitions


@pytest.mark.parametrize(
    ("version", "no_listener"),
    [(1, ErrorCode.LEADER_NOT_AVAILABLE), (5, 5), (6, ErrorCode.LISTENER_NOT_FOUND), (13, 72)],
)
def test_brokers_without_an_address_for_the_client_are_left_out(version: int, no_listener: int, member: Member) -> None:
    brokers, partitions = describe(member, version)
    assert brokers == [(1, "host-1", 9092)]
    down = (ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER)
    assert partitions == {0: (0, 1), 1: (no_listener, NO_LEADER), 2: down, 3: down}


def test_offline_replicas(member: Member) -> None:
    (topic,) = member.ask(MetadataRequest(topics=None), 13).topics
    assert [partition.offline_replicas for partition in topic.partitions] == [[3], [], [3], [2]]
    assert [partition.replica_nodes for partition in topic.partitions] == [[1, 2, 3], [2, 1], [3, 1], [2]]


def test_a_broker_without_metadata_answers_when_it_has_some(member: Member) -> None:
    member.node.holder.publish(MetadataImage())
    pending = member.start(MetadataRequest(topics=[]), 9)
    assert isinstance(pending, Pending) and not has_fired(pending.response)
    member.node.holder.publish(member.image)
    member.role.informed.callback(None)
    assert [broker.node_id for broker in outcome(pending.response).brokers] == [1]


def test_version_0_names_no_replica_without_an_address(member: Member) -> None:
    _, partitions = describe(member, 0)
    assert partitions[0] == (ErrorCode.REPLICA_NOT_AVAILABLE, 1)
    (topic,) = member.ask(MetadataRequest(topics=[]), 0).topics
    assert [partition.replica_nodes for partition in topic.partitions] == [[1], [1], [1], []]
    assert [partition.isr_nodes for partition in topic.partitions] == [[1], [1], [], []]


def test_describe_cluster(member: Member) -> None:
    response: DescribeClusterResponse = member.ask(DescribeClusterRequest(), 2)
    assert [(broker.broker_id, broker.host, broker.port, broker.rack) for broker in response.brokers] == [
        (1, "host-1", 9092, "r1")
    ]
    assert response.controller_id == 2


def test_other_listeners_see_other_brokers(member: Member) -> None:
    context = context_of(2, listener="INTERNAL")
    response = handle_describe_cluster(DescribeClusterRequest(), context, member.node.services)
    brokers = reread_response(response, DescribeClusterResponse, 2).brokers
    assert [(broker.broker_id, broker.host) for broker in brokers] == [(1, "host-1"), (2, "host-2")]


def test_topics_in_pages(member: Member) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")], response_partition_limit=10)
    response: DescribeTopicPartitionsResponse = member.ask(request, 0)
    partitions = response.topics[0].partitions
    assert [(partition.error_code, partition.leader_id) for partition in partitions] == [
        (0, 1),
        (0, -1),
        (0, -1),
        (0, -1),
    ]
    assert [partition.offline_replicas for partition in partitions] == [[3], [], [3], [2]]


def test_hints_name_only_leaders_with_an_address(member: Member) -> None:
    hints = LeaderHints(context_of(10), member.node.services)
    assert [hints.find_leader("t", index) for index in range(3)] == [(1, 7), (2, 8), (3, 9)]
    assert hints.find_leader(T_ID, 9) is None
    assert {address.host for address in hints.addresses.values()} == {"host-1"}


@pytest.mark.parametrize(("name", "code"), [("1", 0), ("", 0), ("2", ErrorCode.INVALID_REQUEST)])
def test_a_broker_describes_only_itself(name: str, code: int, member: Member) -> None:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=name, configuration_keys=["log.dirs"]
    )
    response: DescribeConfigsResponse = member.ask(DescribeConfigsRequest(resources=[resource]), 4)
    assert response.results[0].error_code == code


# Elections


def make_elect_request(partitions: list[int] | None, kind: int = 0, timeout_ms: int = 1000) -> ElectLeadersRequest:
    topics = None if partitions is None else [TopicPartitions(topic="t", partitions=partitions)]
    return ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=timeout_ms)


def list_elected(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, partition.partition_id): partition.error_code
        for topic in response.replica_election_results
        for partition in topic.partition_result
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_controller_elects(version: int, member: Member) -> None:
    member.active.outcomes = succeed({TopicPartition("t", 0): None, TopicPartition("t", 9): UNKNOWN})
    assert list_elected(member.ask(make_elect_request([0, 9]), version)) == {("t", 0): 0, ("t", 9): UNKNOWN.code}
    assert member.active.asked == [(ElectionType.PREFERRED, [("t", 0), ("t", 9)])]


def test_all_partitions_are_elected_uncleanly(member: Member) -> None:
    member.active.outcomes = succeed({TopicPartition("t", 3): None})
    assert list_elected(member.ask(make_elect_request(None, 1), 2)) == {("t", 3): 0}
    assert member.active.asked == [(ElectionType.UNCLEAN, None)]


def test_unknown_elections_are_refused(member: Member) -> None:
    assert member.ask(make_elect_request([0], 7), 2).error_code == ErrorCode.INVALID_REQUEST
    assert member.active.asked == []


def test_an_election_that_takes_too_long(member: Member) -> None:
    member.active.outcomes = Deferred()
    pending = member.start(make_elect_request([0]), 2)
    assert not has_fired(pending.response)
    member.clock.advance(1.0)  # type: ignore[attr-defined]
    response = outcome(pending.response)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert list_elected(response) == {("t", 0): ErrorCode.REQUEST_TIMED_OUT}
    member.active.outcomes.callback({})


# Reassignments


def make_reassign_request(*replicas: list[int] | None, allowed: bool = True) -> AlterPartitionReassignmentsRequest:
    partitions = [ReassignablePartition(partition_index=index, replicas=nodes) for index, nodes in enumerate(replicas)]
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=partitions)], allow_replication_factor_change=allowed
    )


@pytest.mark.parametrize("version", [0, 1])
def test_the_controller_reassigns(version: int, member: Member) -> None:
    member.active.outcomes = succeed({TopicPartition("t", 0): None, TopicPartition("t", 1): UNKNOWN})
    response = member.ask(make_reassign_request([1, 2], None, allowed=version == 0), version)
    (topic,) = response.responses
    assert [(partition.partition_index, partition.error_code) for partition in topic.partitions] == [
        (0, 0),
        (1, UNKNOWN.code),
    ]
    assert member.active.asked == [({("t", 0): [1, 2], ("t", 1): None}, version == 0)]


def test_ongoing_reassignments_are_listed(member: Member) -> None:
    (topic,) = member.ask(ListPartitionReassignmentsRequest(), 0).topics
    (moving,) = topic.partitions
    assert (topic.name, moving.partition_index, moving.replicas) == ("t", 0, [1, 2, 3])
    assert (moving.adding_replicas, moving.removing_replicas) == ([3], [])


@pytest.mark.parametrize(("index", "count"), [(0, 1), (1, 0), (9, 0)])
def test_given_partitions_are_listed(index: int, count: int, member: Member) -> None:
    wanted = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[index])]
    assert len(member.ask(ListPartitionReassignmentsRequest(topics=wanted), 0).topics) == count


@pytest.mark.parametrize(
    "request_", [make_elect_request([0]), make_reassign_request([1]), ListPartitionReassignmentsRequest()]
)
def test_another_broker_is_not_the_controller(request_: Request) -> None:
    member = Member(is_controller=False)
    version = find_api(request_.API_KEY).request.VERSIONS.last
    assert member.ask(request_, version).error_code == ErrorCode.NOT_CONTROLLER


# Time limits


class SlowController:
    """Starts every change and ends none until the test says so."""

    def __init__(self, member: Member) -> None:
        self.started: list[Deferred[Any]] = []
        self.committed = member.image
        member.node.services.controller = self  # type: ignore[assignment]

    def _start(self, *_: Any, **__: Any) -> Deferred[Any]:
        self.started.append(Deferred())
        return self.started[-1]

    create_topics = create_partitions = delete_topics = _start


CHANGES = [
    (CreateTopicsRequest(topics=[CreatableTopic(name="new")], timeout_ms=5000), "topics", 7),
    (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=9, assignments=None)], timeout_ms=5000),
        "results",
        3,
    ),
    (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5000), "responses", 6),
]


@pytest.mark.parametrize(("request_", "field", "version"), CHANGES)
def test_a_change_is_answered_in_time_and_goes_on(request_: Request, field: str, version: int, member: Member) -> None:
    controller = SlowController(member)
    pending = member.start(request_, version)
    assert isinstance(pending, Pending)
    member.clock.advance(4.9)  # type: ignore[attr-defined]
    assert not has_fired(pending.response)
    member.clock.advance(0.1)  # type: ignore[attr-defined]
    (result,) = getattr(outcome(pending.response), field)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT and result.error_message
    controller.started[0].callback([None])


@pytest.mark.parametrize(("request_", "field", "version"), CHANGES)
def test_an_early_failure_is_answered_as_it_is(request_: Request, field: str, version: int, member: Member) -> None:
    controller = SlowController(member)
    pending = member.start(request_, version)
    controller.started[0].errback(UNKNOWN)
    (result,) = getattr(outcome(pending.response), field)
    assert result.error_code == UNKNOWN.code
    assert member.clock.getDelayedCalls() == []  # type: ignore[attr-defined]


def test_a_late_failure_is_logged_if_it_is_a_defect(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    for problem in (UNKNOWN, ZeroDivisionError("a defect")):
        controller = SlowController(member)
        pending = member.start(CHANGES[0][0], 7)
        member.clock.advance(5)  # type: ignore[attr-defined]
        controller.started[0].errback(problem)
        assert outcome(pending.response).topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert caplog.text.count("a change failed after its request's time") == 1


def test_a_single_node_does_not_limit_the_time() -> None:
    member = Member()
    member.node.services.cluster = None
    controller = SlowController(member)
    pending = member.start(CHANGES[2][0], 6)
    member.clock.advance(100)  # type: ignore[attr-defined]
    assert not has_fired(pending.response)
    controller.started[0].callback([None])
    assert outcome(pending.response).responses[0].error_code == 0


def test_a_resigned_controller_fails_a_change(member: Member) -> None:
    member.active.outcomes = fail(KafkaError(ErrorCode.NOT_CONTROLLER, "resigned"))
    assert member.ask(make_elect_request([0]), 2).error_code == ErrorCode.NOT_CONTROLLER
