"""Elections, reassignments, the quorum and brokers, on a node that is alone."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.wire.apis.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkacompat.wire.apis.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafkacompat.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def node() -> AdminNode:
    made = AdminNode()
    made.make_topic("t", 2)
    return made


def without_leader(node: AdminNode, index: int) -> None:
    """Publish that one partition of t has no leader."""
    image = node.holder.image
    topic = image.topics["t"]
    partitions = [
        partition._replace(leader=NO_LEADER) if partition.partition == index else partition
        for partition in topic.partitions
    ]
    node.holder.publish(image.with_topics({"t": topic._replace(partitions=tuple(partitions))}))


def elect(node: AdminNode, topics: list[TopicPartitions] | None, kind: int = PREFERRED) -> ElectLeadersResponse:
    return node.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), ElectLeadersResponse, 2)


def list_elected(node: AdminNode, kind: int = PREFERRED, *partitions: int, topic: str = "t") -> dict[int, int]:
    (result,) = elect(node, [TopicPartitions(topic=topic, partitions=list(partitions))], kind).replica_election_results
    assert all(partition.error_message for partition in result.partition_result)
    return {partition.partition_id: partition.error_code for partition in result.partition_result}


def test_a_leader_need_not_be_elected(node: AdminNode) -> None:
    assert list_elected(node, PREFERRED, 0) == list_elected(node, UNCLEAN, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_elected(node, PREFERRED, 2, -1) == {2: unknown, -1: unknown}
    assert list_elected(node, PREFERRED, 0, topic="absent") == {0: unknown}


def test_a_partition_that_cannot_be_opened_gets_no_leader(node: AdminNode) -> None:
    without_leader(node, 1)
    assert list_elected(node, PREFERRED, 1) == {1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert list_elected(node, UNCLEAN, 1) == {1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_election_of_all_returns_partitions_without_a_leader(node: AdminNode) -> None:
    assert [topic.partition_result for topic in elect(node, None).replica_election_results] == [[]]
    without_leader(node, 1)
    (result,) = elect(node, None).replica_election_results
    assert [partition.partition_id for partition in result.partition_result] == [1]


def test_an_unknown_kind_of_election_is_refused(node: AdminNode) -> None:
    response = elect(node, [TopicPartitions(topic="t", partitions=[0])], 7)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST
    everything, nothing = elect(node, None, 7), elect(node, [], 7)
    assert (everything.error_code, everything.replica_election_results) == (ErrorCode.INVALID_REQUEST, [])
    assert (nothing.error_code, nothing.replica_election_results) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([1], ErrorCode.NONE),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_reassigning(node: AdminNode, replicas: list[int] | None, code: ErrorCode) -> None:
    wanted = [ReassignablePartition(partition_index=index, replicas=replicas) for index in (0, 2)]
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=False, topics=[ReassignableTopic(name="t", partitions=wanted)]
    )
    response = node.ask(request, AlterPartitionReassignmentsResponse, 1)
    known, unknown = response.responses[0].partitions
    assert known.error_code == code
    assert (known.error_message is None) == (code == ErrorCode.NONE)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not response.allow_replication_factor_change


def test_no_reassignment_is_listed(node: AdminNode) -> None:
    response = node.ask(ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse, 0)
    assert (response.error_code, response.topics) == (0, [])


def describe_quorum(node: AdminNode, *partitions: tuple[str, int]) -> DescribeQuorumResponse:
    topics = [TopicData(topic_name=name, partitions=[PartitionData(partition_index=at)]) for name, at in partitions]
    return node.ask(DescribeQuorumRequest(topics=topics), DescribeQuorumResponse, 2)


def test_the_quorum_is_this_node(node: AdminNode) -> None:
    def end_offset() -> int:
        (partition,) = describe_quorum(node, ("__cluster_metadata", 0)).topics[0].partitions
        assert (partition.leader_id, partition.error_code, partition.observers) == (1, 0, [])
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, partition.high_watermark)
        return voter.log_end_offset

    before = end_offset()
    node.make_topic("u")
    assert end_offset() > before
    assert [broker.node_id for broker in describe_quorum(node, ("__cluster_metadata", 0)).nodes] == [1]


@pytest.mark.parametrize("others", [[("t", 0)], [("__cluster_metadata", 1)], [("__cluster_metadata", 0), ("t", 0)]])
def test_nothing_else_has_a_quorum(node: AdminNode, others: list[tuple[str, int]]) -> None:
    response = describe_quorum(node, *others)
    codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not response.nodes


@pytest.mark.parametrize(
    ("cluster_id", "code"),
    [
        (None, ErrorCode.UNSUPPORTED_VERSION),
        ("cluster-1", ErrorCode.UNSUPPORTED_VERSION),
        ("other", ErrorCode.INCONSISTENT_CLUSTER_ID),
    ],
)
def test_voters_neither_come_nor_go(node: AdminNode, cluster_id: str | None, code: ErrorCode) -> None:
    added = node.ask(AddRaftVoterRequest(cluster_id=cluster_id), AddRaftVoterResponse, 1)
    removed = node.ask(RemoveRaftVoterRequest(cluster_id=cluster_id), RemoveRaftVoterResponse, 0)
    assert added.error_code == removed.error_code == code
    assert added.error_message
    assert removed.error_message


def test_a_running_broker_stays_registered(node: AdminNode) -> None:
    def unregister(broker_id: int) -> int:
        return node.ask(UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse, 0).error_code

    assert unregister(1) == ErrorCode.INVALID_REQUEST
    assert unregister(2) == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert list(node.holder.image.brokers) == [1]
