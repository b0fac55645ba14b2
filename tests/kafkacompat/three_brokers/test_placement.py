"""Instances in groups of brokers: where their topics are placed, and which brokers their clients see."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.instances import TenantClient, alter, make_groups, make_instance
from tests.kafkacompat.three_brokers.support import Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller

FOUR = (1, 2, 3, 4)
OWN_PORT = 19092


def start(**properties: str) -> Cluster:
    """Start four brokers in two groups, with an instance in each."""
    cluster = Cluster(FOUR, offsets_topic_replication_factor="2", **properties)
    make_groups(cluster, "a:1-2,b:3-4")
    make_instance(cluster, "shop", placement_group="a")
    make_instance(cluster, "blog", placement_group="b")
    return cluster


def replicas_of(cluster: Cluster, topic: str, node: int | None = None) -> list[tuple[int, ...]]:
    image = cluster.brokers[node or cluster.any_node()].metadata.image
    return [partition.replicas for partition in image.topics[topic].partitions]


def list_ids(response: Any) -> set[int]:
    return {broker.node_id for broker in response.brokers}


def test_topics_are_placed_in_the_group_of_their_instance() -> None:
    cluster = start()
    for name, nodes in (("shop", {1, 2}), ("blog", {3, 4})):
        client = TenantClient(cluster, name)
        for node in FOUR:
            result = client.create(node, f"t{node}", partitions=4)
            assert (result.error_code, result.name) == (0, f"t{node}"), result
            placed = replicas_of(cluster, f"{name}.t{node}", cluster.controller())
            assert {node for replicas in placed for node in replicas} == nodes
            assert Counter(replicas[0] for replicas in placed) == dict.fromkeys(nodes, 2)
    # The operator's own topics are placed anywhere.
    cluster.create("physical", replicas=4)


def test_only_the_brokers_of_the_group_count() -> None:
    cluster = start()
    client = TenantClient(cluster, "shop")
    for node in FOUR:
        refused = client.create(node, "t", replicas=3)
        assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        assert "only 2 broker(s)" in refused.error_message


@pytest.mark.parametrize("node", FOUR)
def test_an_instance_does_not_choose_brokers_outside_its_group(node: int) -> None:
    cluster = start()
    client = TenantClient(cluster, "shop")
    assert client.create(node, "t").error_code == 0
    wanted = CreatableTopic(
        name="u",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 3])],
    )
    refused = client.ask(node, CreateTopicsRequest(topics=[wanted], timeout_ms=20_000)).topics[0]
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refused.error_message == "the assignment names broker 3, which accepts no replicas of this topic"

    def grow(count: int, replicas: list[int] | None) -> Any:
        assignments = None if replicas is None else [CreatePartitionsAssignment(broker_ids=replicas)]
        topic = CreatePartitionsTopic(name="t", count=count, assignments=assignments)
        return client.ask(node, CreatePartitionsRequest(topics=[topic], timeout_ms=20_000)).results[0]

    assert grow(2, [1, 4]).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(2, [2, 1]).error_code == 0
    assert grow(6, None).error_code == 0
    cluster.wait(lambda: len(replicas_of(cluster, "shop.t")) == 6)
    assert all(set(replicas) == {1, 2} for replicas in replicas_of(cluster, "shop.t"))


def test_topics_that_requests_create_are_placed_in_the_group() -> None:
    cluster = start(default_replication_factor="2", num_partitions="3")
    client = TenantClient(cluster, "blog")
    topics = [MetadataRequestTopic(name="auto")]
    for node in FOUR:
        client.ask(node, MetadataRequest(topics=topics, allow_auto_topic_creation=True))
    cluster.wait(lambda: "blog.auto" in cluster.brokers[1].metadata.image.topics)
    assert {node for replicas in replicas_of(cluster, "blog.auto") for node in replicas} == {3, 4}


def test_an_instance_without_a_group_lives_outside_all_groups() -> None:
    cluster = start()
    make_instance(cluster, "rest")
    client = TenantClient(cluster, "rest")
    assert client.create(1, "t", replicas=1).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    # Without any broker of its own it sees all of them, as clients discard metadata without brokers.
    assert list_ids(client.ask(1, MetadataRequest(topics=[]))) == set(FOUR)
    make_groups(cluster, "a:1-2,b:3")
    assert client.create(1, "t", replicas=1).error_code == 0
    cluster.wait(lambda: "rest.t" in cluster.brokers[1].metadata.image.topics)
    assert replicas_of(cluster, "rest.t") == [(4,)]
    assert list_ids(client.ask(1, MetadataRequest(topics=[]))) == {4}


def test_replicas_spread_over_the_racks_that_an_instance_has() -> None:
    cluster = Cluster(nodes=())
    for node, rack in ((1, "x"), (2, "x"), (3, "y"), (4, "z")):
        cluster.start(node, broker_rack=rack)
    make_groups(cluster, "a:1-4")
    make_instance(cluster, "shop", placement_group="a", placement_racks="x,y")
    client = TenantClient(cluster, "shop")
    assert client.create(1, "t", partitions=6, replicas=2).error_code == 0
    cluster.wait(lambda: "shop.t" in cluster.brokers[1].metadata.image.topics)
    assert all(len(set(replicas) & {1, 2}) == 1 and 3 in replicas for replicas in replicas_of(cluster, "shop.t"))
    response = client.ask(4, MetadataRequest(topics=[]))
    assert {broker.node_id: broker.rack for broker in response.brokers} == {1: "x", 2: "x", 3: "y"}


def test_clients_see_the_brokers_of_their_group_and_coordinators() -> None:
    cluster = start(offsets_topic_num_partitions="1", transaction_state_log_num_partitions="1")
    for name, nodes in (("shop", {1, 2}), ("blog", {3, 4})):
        client = TenantClient(cluster, name)
        assert client.create(1, "t").error_code == 0
        for node in FOUR:
            response = client.ask(node, MetadataRequest(topics=None))
            assert list_ids(response) == nodes
            assert response.controller_id in nodes
            assert (response.controller_id == cluster.controller()) == (cluster.controller() in nodes)
            described = client.ask(node, DescribeClusterRequest())
            assert {broker.broker_id for broker in described.brokers} == nodes
            assert described.controller_id == response.controller_id
    # One coordinator serves groups of all instances, and all their clients see it.
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    for name, nodes in (("shop", {1, 2}), ("blog", {3, 4})):
        client = TenantClient(cluster, name)
        (coordinator,) = client.ask(1, request).coordinators
        assert (coordinator.error_code, coordinator.key) == (0, "g")
        for node in FOUR:
            assert list_ids(client.ask(node, MetadataRequest(topics=None))) == {*nodes, coordinator.node_id}


def test_clients_reach_their_group_by_the_instance_s_own_listener_on_any_broker() -> None:
    cluster = start()
    make_instance(cluster, "shop", listeners=f"PLAINTEXT://:{OWN_PORT}")
    cluster.advance(1)
    for node in FOUR:
        connections = BrokerConnections(
            ConnectionSettings("client"), cluster.network.at(f"shop-{node}"), cluster.clock, Random(node)
        )
        address = BrokerAddress(node, f"broker-{node}", OWN_PORT)
        response = cluster.run(connections.request(address, "client", MetadataRequest(topics=[]), timeout_s=10.0))
        connections.close()
        assert {(broker.node_id, broker.host, broker.port) for broker in response.brokers} == {
            (1, "broker-1", OWN_PORT),
            (2, "broker-2", OWN_PORT),
        }
        assert (response.cluster_id, response.controller_id in (1, 2)) == ("id-of-shop", True)


def test_groups_of_brokers_and_instances_agree(caplog: pytest.LogCaptureFixture) -> None:
    cluster = start()
    controller = cluster.controller()

    def refuse(kind: ResourceType, name: str, **configs: str) -> str:
        result = alter(cluster, controller, kind, name, **configs)
        assert result.error_code != 0
        return str(result.error_message)

    groups = "kafkacompat.broker.groups"
    assert "there is no group c" in refuse(ResourceType.INSTANCE, "shop", placement_group="c")
    removed = refuse(ResourceType.BROKER, "", **{groups: "a:1-4"})
    assert "has to keep the group b, which the instance blog lives in" in removed
    assert "the group a too" in refuse(ResourceType.BROKER, "", **{groups: "a:1-2,b:2-3"})
    make_groups(cluster, "a:1-2+8,b:3-4+9")
    assert "The group b has brokers that are not registered: 9" in caplog.messages
    assert "the same for all brokers" in refuse(ResourceType.BROKER, str(controller), **{groups: "a:1"})


def test_a_group_that_fails_leaves_the_other_group_alone() -> None:
    cluster = start()
    shop, blog = TenantClient(cluster, "shop"), TenantClient(cluster, "blog")
    assert shop.create(1, "t").error_code == 0
    assert blog.create(1, "t").error_code == 0
    cluster.wait_for_leader("blog.t")
    for node in (1, 2):
        cluster.kill(node)
    wait_for_controller(cluster)
    cluster.wait(lambda: set(cluster.brokers[3].metadata.image.brokers) == {3, 4})
    assert blog.create(4, "u").error_code == 0
    assert list_ids(blog.ask(3, MetadataRequest(topics=None))) == {3, 4}
    assert shop.create(3, "u").error_code == ErrorCode.INVALID_REPLICATION_FACTOR
