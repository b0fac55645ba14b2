"""The controller moves replicas of instances away from brokers whose disks are nearly full."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.memory_files import _DISK_BYTES
from tests.kafkacompat.three_brokers.instances import TenantClient, make_groups, make_instance
from tests.kafkacompat.three_brokers.support import Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller

FOUR = (1, 2, 3, 4)
INTERVAL_S = 60
VALUE = bytes(range(256)) * 800


def start(**properties: str) -> Cluster:
    """Start four brokers; the topic of an instance has partitions on brokers 1 and 2 of a group of three brokers."""
    cluster = Cluster(
        FOUR,
        kafkacompat_broker_group_balance_interval_ms=str(INTERVAL_S * 1000),
        **properties,
    )
    make_groups(cluster, "a:1-2,b:4")
    make_instance(cluster, "shop", placement_group="a")
    assert TenantClient(cluster, "shop").create(1, "t", partitions=2, replicas=1).error_code == 0
    make_groups(cluster, "a:1-3,b:4")
    for index in range(2):
        leader = cluster.wait_for_leader("shop.t", index)
        topic = cluster.brokers[leader].metadata.image.topics["shop.t"]
        batch = build_batch([(0, b"k", VALUE, [])])
        data = TopicProduceData(
            topic_id=topic.topic_id, partition_data=[PartitionProduceData(index=index, records=batch)]
        )
        answer = cluster.ask(leader, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]))
        assert answer.responses[0].partition_responses[0].error_code == 0
    return cluster


def fill(cluster: Cluster, node: int, part: float) -> None:
    """Let a part of a broker's disk be in use."""
    cluster.files[node].free_bytes = int(_DISK_BYTES * (1 - part))


def find_places(cluster: Cluster) -> list[tuple[int, ...]]:
    topics = cluster.brokers[cluster.any_node()].metadata.image.topics
    return sorted(partition.replicas for partition in topics["shop.t"].partitions)


@pytest.mark.parametrize("controller_dies", [False, True])
def test_replicas_leave_a_broker_whose_disks_are_nearly_full(controller_dies: bool) -> None:
    cluster = start()
    assert find_places(cluster) == [(1,), (2,)]
    if controller_dies:
        cluster.kill(first := cluster.controller())
        wait_for_controller(cluster, but=first)
        cluster.start(first)
    fill(cluster, 1, 0.9)
    fill(cluster, 2, 0.22)
    fill(cluster, 3, 0.2)
    fill(cluster, 4, 0.0)
    cluster.advance(INTERVAL_S + 5)
    assert find_places(cluster) == [(2,), (3,)]
    cluster.wait_for_leader("shop.t", 0)
    cluster.advance(2 * INTERVAL_S)
    assert find_places(cluster) == [(2,), (3,)]


@pytest.mark.parametrize(("used", "racks"), [((0.7, 0.1, 0.1), ""), ((0.9, 0.88, 0.87), ""), ((0.9, 0.2, 0.2), "x")])
def test_nothing_moves_without_need(used: tuple[float, ...], racks: str) -> None:
    cluster = start()
    if racks:
        make_instance(cluster, "shop", placement_racks=racks)
    for node, part in enumerate(used, 1):
        fill(cluster, node, part)
    cluster.advance(2 * INTERVAL_S + 5)
    assert find_places(cluster) == [(1,), (2,)]
