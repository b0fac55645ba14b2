"""FindCoordinator, ListGroups, DescribeGroups and DeleteGroups in every version."""

from dataclasses import replace

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.metadata.image import BrokerImage
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_node import GroupNode
from tests.kafkacompat.groups.support import is_waiting

MIN_INT32 = -0x80000000
"""Operations that were not asked for."""


def find_coordinators(
    node: GroupNode, version: int, *keys: str, key_type: int = 0, listener: str = "PLAINTEXT"
) -> list[Coordinator]:
    """The coordinators, in the form of version 4."""
    fields = {"coordinator_keys": list(keys)} if version >= 4 else {"key": keys[0]}
    request = FindCoordinatorRequest(key_type=key_type, **fields)
    answer = node.ask(request, FindCoordinatorResponse, version, listener)
    if version >= 4:
        return answer.coordinators
    return [
        Coordinator(
            key=keys[0],
            node_id=answer.node_id,
            host=answer.host,
            port=answer.port,
            error_code=answer.error_code,
            error_message=answer.error_message,
        )
    ]


def read_place(coordinator: Coordinator) -> tuple[int, str, int]:
    return coordinator.node_id, coordinator.host, coordinator.port


@pytest.mark.parametrize("version", range(7))
def test_the_coordinator_of_a_group_is_found(version: int) -> None:
    (coordinator,) = find_coordinators(GroupNode(), version, "g")
    assert (coordinator.error_code, read_place(coordinator)) == (0, (1, "10.0.0.5", 9092))


@pytest.mark.parametrize("version", range(4, 7))
def test_the_coordinators_of_several_groups_are_found(version: int) -> None:
    coordinators = find_coordinators(GroupNode(), version, "a", "b", "")
    assert [coordinator.key for coordinator in coordinators] == ["a", "b", ""]
    assert {read_place(coordinator) for coordinator in coordinators} == {(1, "10.0.0.5", 9092)}
    assert find_coordinators(GroupNode(), version) == []


def test_find_coordinator_returns_a_listeners_fixed_address() -> None:
    (coordinator,) = find_coordinators(GroupNode(), 6, "g", listener="FIXED")
    assert read_place(coordinator) == (1, "broker.example", 9093)


def test_find_coordinator_returns_no_dead_leader() -> None:
    node = GroupNode()
    image = node.holder.image
    node.holder.publish(type(image)(topics=image.topics))
    (coordinator,) = find_coordinators(node, 6, "g")
    assert (coordinator.error_code, read_place(coordinator)) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, (-1, "", -1))


@pytest.mark.parametrize(
    ("leader", "listener", "code", "where"),
    [
        (2, "PLAINTEXT", ErrorCode.NONE, (2, "second.example", 9094)),
        (2, "FIXED", ErrorCode.COORDINATOR_NOT_AVAILABLE, (-1, "", -1)),
        (-1, "PLAINTEXT", ErrorCode.COORDINATOR_NOT_AVAILABLE, (-1, "", -1)),
    ],
)
def test_the_coordinator_is_the_broker_that_leads_the_partition(
    leader: int, listener: str, code: ErrorCode, where: tuple[int, str, int]
) -> None:
    node = GroupNode()
    image = node.holder.image
    offsets = image.topics["__consumer_offsets"]
    led = tuple(partition._replace(leader=leader) for partition in offsets.partitions)
    brokers = {**image.brokers, 2: BrokerImage(2, None, {"PLAINTEXT": ("second.example", 9094)})}
    topics = {**image.topics, offsets.name: offsets._replace(partitions=led)}
    node.holder.publish(replace(image, brokers=brokers).with_topics(topics))
    (coordinator,) = find_coordinators(node, 6, "g", listener=listener)
    assert (coordinator.error_code, read_place(coordinator)) == (code, where)


def test_the_first_find_coordinator_creates_the_offsets_topic() -> None:
    node = GroupNode(has_offsets_topic=False)
    node.making = Deferred()
    waiting = node.send(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    assert is_waiting(waiting)
    node.set_topics(__consumer_offsets=4)
    node.making.callback(None)
    (coordinator,) = node.read(waiting, FindCoordinatorResponse, 6).coordinators
    assert (coordinator.error_code, coordinator.node_id) == (0, 1)


@pytest.mark.parametrize("version", [0, 3, 6])
def test_if_the_offsets_topic_cannot_be_made_there_is_no_coordinator(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    node = GroupNode(has_offsets_topic=False)
    node.making = Deferred()
    node.making.errback(Failure(KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "3 replicas, 1 broker")))
    (coordinator,) = find_coordinators(node, version, "g")
    assert (coordinator.error_code, read_place(coordinator)) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, (-1, "", -1))
    assert "3 replicas, 1 broker" in caplog.text


@pytest.mark.parametrize("version", [1, 3, 4, 6])
@pytest.mark.parametrize(
    ("key_type", "words"),
    [(2, "share groups are not served"), (9, "there is no coordinator of type 9")],
)
def test_find_coordinator_refuses_unknown_key_types(version: int, key_type: int, words: str) -> None:
    (coordinator,) = find_coordinators(GroupNode(has_offsets_topic=False), version, "x", key_type=key_type)
    assert (coordinator.error_code, coordinator.error_message, read_place(coordinator)) == (
        ErrorCode.INVALID_REQUEST,
        words,
        (-1, "", -1),
    )


# ListGroups


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(version: int) -> None:
    node = GroupNode()
    node.world.stable()
    answer = node.ask(ListGroupsRequest(), ListGroupsResponse, version)
    (group,) = answer.groups
    state = "Stable" if version >= 4 else ""
    kind = "classic" if version >= 5 else ""
    assert (answer.error_code, group.group_id, group.protocol_type) == (0, "g", "consumer")
    assert (group.group_state, group.group_type) == (state, kind)


@pytest.mark.parametrize(
    ("states", "types", "count"), [(["empty"], [], 0), (["STABLE"], [], 1), ([], ["classic"], 1), ([], ["share"], 0)]
)
def test_groups_are_selected(states: list[str], types: list[str], count: int) -> None:
    node = GroupNode()
    node.world.stable()
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    assert len(node.ask(request, ListGroupsResponse, 5).groups) == count


def test_a_coordinator_that_stops_lists_nothing() -> None:
    node = GroupNode()
    node.world.coordinator.stop()
    answer = node.ask(ListGroupsRequest(), ListGroupsResponse, 5)
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])


# DescribeGroups


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(version: int) -> None:
    node = GroupNode()
    (member_id,) = node.world.stable()
    request = DescribeGroupsRequest(groups=["g", "x"], include_authorized_operations=version >= 3)
    known, unknown = node.ask(request, DescribeGroupsResponse, version).groups
    assert (known.error_code, known.group_state, known.protocol_data) == (0, "Stable", "range")
    assert [member.member_id for member in known.members] == [member_id]
    all_operations = 0b1101_0100_1000 if version >= 3 else MIN_INT32
    assert known.authorized_operations == all_operations
    assert (unknown.group_id, unknown.group_state, unknown.members) == ("x", "Dead", [])
    if version >= 6:
        assert (unknown.error_code, unknown.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group x not found.")
        assert unknown.authorized_operations == MIN_INT32
    else:
        assert (unknown.error_code, unknown.authorized_operations) == (0, all_operations)


def test_a_group_named_many_times_is_described_once() -> None:
    request = DescribeGroupsRequest(groups=["x", "g", "x"])
    groups = GroupNode().ask(request, DescribeGroupsResponse, 5).groups
    assert [group.group_id for group in groups] == ["x", "g"]


def test_describe_returns_operations_only_on_request() -> None:
    node = GroupNode()
    (group,) = node.ask(DescribeGroupsRequest(groups=["x"]), DescribeGroupsResponse, 5).groups
    assert group.authorized_operations == MIN_INT32


# DeleteGroups


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(version: int) -> None:
    node = GroupNode()
    node.world.stable()
    node.world.commit(group="empty")
    request = DeleteGroupsRequest(groups_names=["empty", "g", "x", "empty"])
    answer = node.ask(request, DeleteGroupsResponse, version)
    assert [(result.group_id, result.error_code) for result in answer.results] == [
        ("empty", 0),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("x", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert node.world.committed(group="empty") == -1
