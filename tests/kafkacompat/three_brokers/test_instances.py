"""Instances of a cluster: known by every broker, through the ends of controllers and brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.broker import Broker
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ResourceChange
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkacompat.wire.apis.metadata import MetadataRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.instances import TenantClient, alter, knows, make_instance
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, Cluster
from tests.kafkacompat.three_brokers.test_controllers import is_settled, wait_for_controller

OFFSET_VERSION = 8
"""OffsetCommit and OffsetFetch by names of topics."""


def start(**properties: str) -> Cluster:
    return Cluster(NODES, offsets_topic_replication_factor="3", **properties)


@pytest.mark.parametrize("node", NODES)
def test_an_instance_is_created_at_any_broker(node: int) -> None:
    cluster = start()
    make_instance(cluster, "shop", node, description="first")
    assert f"{CHROOT}/config/instances/shop" in cluster.zookeeper.contents()
    make_instance(cluster, "shop", node, description="second")
    refused = alter(cluster, node, ResourceType.INSTANCE, "shop.x", cluster_id="c", secret="s")
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert "the instance name 'shop.x' is not valid" in refused.error_message


def test_a_broker_knows_the_instances_before_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = start()
    make_instance(cluster, "shop", description="before")
    node = next(other for other in NODES if other != cluster.controller())
    cluster.kill(node)
    make_instance(cluster, "shop", description="while away")
    make_instance(cluster, "blog")
    seen: list[dict[str, str]] = []
    listen = Broker._listen

    async def note(broker: Broker) -> None:
        seen.append({name: view.instance.string("description") for name, view in broker.instances.by_name.items()})
        await listen(broker)

    monkeypatch.setattr(Broker, "_listen", note)
    cluster.start(node)
    assert seen == [{"shop": "while away", "blog": ""}]
    # Notifications reach it as before.
    make_instance(cluster, "shop", description="again")


def test_another_controller_keeps_all_instances() -> None:
    cluster = start()
    make_instance(cluster, "shop")
    client = TenantClient(cluster, "shop")
    assert client.create(1, "t", partitions=3, replicas=3).error_code == 0
    cluster.kill(first := cluster.controller())
    second = wait_for_controller(cluster, but=first)
    cluster.wait(lambda: is_settled(cluster))
    assert all(knows(cluster, node, "shop") for node in cluster.brokers)
    make_instance(cluster, "blog")
    for node in cluster.brokers:
        assert client.create(node, f"t{node}").error_code == 0
        refused = client.create(node, "t")
        assert (refused.error_code, refused.name) == (ErrorCode.TOPIC_ALREADY_EXISTS, "t")
    cluster.start(first)
    cluster.wait(lambda: is_settled(cluster) and all(knows(cluster, first, name) for name in ("shop", "blog")))
    assert cluster.controller() == second
    assert {topic.name for topic in client.ask(first, MetadataRequest(topics=None)).topics} == {
        "t",
        *(f"t{node}" for node in NODES if node != first),
    }


def test_an_instance_that_is_removed_is_forgotten() -> None:
    cluster = start()
    make_instance(cluster, "shop")
    controller = cluster.brokers[cluster.controller()].controller
    change = ResourceChange(ResourceType.INSTANCE, "shop", (), replace=True)
    assert cluster.run(controller.alter_configs([change])) == [None]
    cluster.wait(lambda: not any(broker.instances for broker in cluster.brokers.values()))


def commit(group: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    return OffsetCommitRequest(group_id=group, topics=topics)


def find_coordinator(client: TenantClient, node: int, key: str, kind: int = 0) -> int:
    (coordinator,) = client.ask(node, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])).coordinators
    assert (coordinator.error_code, coordinator.key) == (0, key)
    return int(coordinator.node_id)


def test_coordinators_on_other_brokers_serve_the_groups_of_instances() -> None:
    cluster = start()
    clients: dict[str, Any] = {}
    for name in ("shop", "blog"):
        make_instance(cluster, name)
        clients[name] = TenantClient(cluster, name)
        assert clients[name].create(1, "t", replicas=3).error_code == 0
    coordinators = set()
    for index in range(6):
        for offset, (name, client) in enumerate(clients.items(), index * 10):
            group = f"g{index}"
            (node,) = {find_coordinator(client, other, group) for other in NODES}
            coordinators.add(node)
            answer = client.ask(node, commit(group, offset), OFFSET_VERSION)
            (topic,) = answer.topics
            assert (topic.name, topic.partitions[0].error_code) == ("t", 0)
            other = next(other for other in NODES if other != node)
            refused = client.ask(other, commit(group, offset), OFFSET_VERSION)
            assert refused.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR, name
    assert len(coordinators) > 1
    # A broker that goes gives its groups to others; each instance has its own offsets.
    cluster.kill(gone := min(coordinators))
    wait_for_controller(cluster, but=gone)
    cluster.wait(lambda: is_settled(cluster))
    node = next(iter(cluster.brokers))
    for index in range(6):
        for offset, client in enumerate(clients.values(), index * 10):
            cluster.wait(lambda group=f"g{index}", client=client: is_led(client, node, group, gone))  # type: ignore[misc]
            assert fetch_offset(cluster, client, find_coordinator(client, node, f"g{index}"), f"g{index}") == offset


def is_led(client: TenantClient, node: int, group: str, gone: int) -> bool:
    (coordinator,) = client.ask(node, FindCoordinatorRequest(key_type=0, coordinator_keys=[group])).coordinators
    return bool(coordinator.error_code == 0 and coordinator.node_id != gone)


def fetch_offset(cluster: Cluster, client: TenantClient, node: int, group: str) -> int:
    """Return a committed offset, once the group is loaded."""
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])], require_stable=False
    )
    while True:
        answer = client.ask(node, request, 7)
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            assert answer.error_code == 0
            return int(answer.topics[0].partitions[0].committed_offset)
        cluster.turn()


def test_members_and_transactions_of_instances_with_equal_names_are_apart() -> None:
    cluster = start()
    members, producers = [], []
    for name in ("shop", "blog"):
        make_instance(cluster, name)
        client = TenantClient(cluster, name)
        node = find_coordinator(client, 1, "g")
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        joined = client.ask(node, request, 3)
        assert (joined.error_code, joined.leader) == (0, joined.member_id)
        members.append(joined.members)
        node = find_coordinator(client, 2, "tx", 1)
        begun = client.ask(node, InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=10_000))
        assert (begun.error_code, begun.producer_epoch) == (0, 0)
        producers.append(begun.producer_id)
    assert [len(joined) for joined in members] == [1, 1]
    assert len(set(producers)) == 2
