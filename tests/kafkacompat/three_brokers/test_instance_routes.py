"""Instances of a cluster: their listeners on every broker, the addresses for their clients, and whitelists beside replication."""

from __future__ import annotations

from random import Random
from typing import Any

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.schema import Request
from tests.kafkacompat.tenancy.world import make_instance_change
from tests.kafkacompat.three_brokers.support import NODES, Cluster

PORT = 19001


def alter(cluster: Cluster, change: ResourceChange) -> None:
    controller = cluster.brokers[cluster.controller()].controller
    assert cluster.run(controller.alter_configs([change])) == [None]


def set_instance(cluster: Cluster, **properties: str) -> None:
    given = {option.replace("_", "."): value for option, value in properties.items()}
    alter(cluster, make_instance_change("shop", given))


def ask(cluster: Cluster, node: int, request: Request) -> Any:
    connections = BrokerConnections(ConnectionSettings("c"), cluster.network.at("10.0.0.7"), cluster.clock, Random(1))
    address = BrokerAddress(node, f"broker-{node}", PORT)
    try:
        return cluster.run(connections.request(address, "client", request, timeout_s=30.0))
    finally:
        connections.close()


def list_brokers(cluster: Cluster, node: int) -> set[tuple[int, str, int]]:
    return {(other.node_id, other.host, other.port) for other in ask(cluster, node, MetadataRequest(topics=[])).brokers}


def bound_brokers(cluster: Cluster) -> list[int]:
    return [node for node in NODES if PORT in cluster.hosts[node].ports]


def test_every_broker_binds_and_names_the_listeners_of_all() -> None:
    cluster = Cluster()
    set_instance(cluster, listeners=f"PLAINTEXT://:{PORT}")
    cluster.wait(lambda: bound_brokers(cluster) == list(NODES))
    for node in NODES:
        assert list_brokers(cluster, node) == {(other, f"broker-{other}", PORT) for other in NODES}
    coordinator = ask(cluster, 1, FindCoordinatorRequest(key="g", coordinator_keys=["g"])).coordinators[0]
    assert (coordinator.error_code, coordinator.port) == (
        0,
        PORT,
    ) and coordinator.host == f"broker-{coordinator.node_id}"
    set_instance(cluster, listeners=f"PLAINTEXT://:{PORT}", advertised_hosts="1:10.1.0.1,2:10.1.0.2")
    expected = {(1, "10.1.0.1", PORT), (2, "10.1.0.2", PORT), (3, "broker-3", PORT)}
    cluster.wait(lambda: list_brokers(cluster, 3) == expected)
    # A broker that comes back binds them too.
    cluster.kill(3)
    cluster.start(3)
    cluster.wait(lambda: bound_brokers(cluster) == list(NODES))
    alter(cluster, ResourceChange(ResourceType.INSTANCE, "shop", [], replace=True))
    cluster.wait(lambda: not bound_brokers(cluster))


def test_a_whitelist_does_not_keep_followers_away() -> None:
    cluster = Cluster()
    cluster.create("t")
    leader = cluster.wait_for_leader("t")
    nobody = ConfigOperation("kafkacompat.whitelist.consume", ConfigOperationType.SET, "none")
    alter(cluster, ResourceChange(ResourceType.TOPIC, "t", [nobody]))
    cluster.advance(1)
    assert cluster.produce(leader, "t", b"first").error_code == 0
    follower = next(node for node in NODES if node != leader)
    cluster.kill(follower)
    assert cluster.produce(leader, "t", b"second").error_code == 0
    cluster.start(follower)
    cluster.wait_for_in_sync("t", list(NODES))
    cluster.advance(1)
    assert len({tuple(cluster.read_log(node, "t")) for node in NODES}) == 1
