"""What an instance stores on three brokers: the sum decides, and each broker records its part of the usage."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.usage import hours, recorder
from kafkacompat.usage.topic import USAGE_TOPIC
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.tenancy.world import make_instance_change
from tests.kafkacompat.three_brokers.support import NODES, Cluster

VALUE = b"v" * 600
ONE_EACH = {index: [node] for index, node in enumerate(NODES)}


def set_instance(cluster: Cluster, **properties: str) -> None:
    given = {option.replace("_", "."): value for option, value in properties.items()}
    controller = cluster.brokers[cluster.controller()].controller
    assert cluster.run(controller.alter_configs([make_instance_change("shop", given)])) == [None]


def total(cluster: Cluster, node: int) -> int:
    """What a broker knows of the instance's bytes on all brokers."""
    storage = cluster.brokers[node].tenancy.storage
    assert storage is not None
    account = storage.find_account("shop")
    assert account is not None
    return account.total_bytes


def sizes(cluster: Cluster) -> int:
    """The bytes of the instance's replicas on all brokers."""
    return sum(
        partition.log.size_bytes
        for broker in cluster.brokers.values()
        for partition in broker.replica_manager
        if partition.topic.startswith("shop.")
    )


def wait_for_totals(cluster: Cluster, seconds: float = 15) -> None:
    """Wait until every broker with a replica knows the sum."""

    def know_sum() -> bool:
        expected = sizes(cluster)
        return all(
            total(cluster, node) == expected
            for node, broker in cluster.brokers.items()
            if any(partition.topic.startswith("shop.") for partition in broker.replica_manager)
        )

    cluster.wait(know_sum, seconds)


def produce(cluster: Cluster, index: int) -> ErrorCode:
    leader = ONE_EACH[index][0]
    return ErrorCode(cluster.produce(leader, "shop.t", VALUE, index=index).error_code)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.wait(lambda: made.controller() > 0)
    return made


def test_the_sum_over_all_brokers_decides(cluster: Cluster) -> None:
    set_instance(cluster, limit_storage_bytes="1900")
    cluster.create("shop.t", assignment=ONE_EACH)
    for index in range(3):
        cluster.wait_for_leader("shop.t", index)
        assert produce(cluster, index) is ErrorCode.NONE
    wait_for_totals(cluster)
    # No broker has a third of the limit to itself: one may still take all that is left.
    assert sizes(cluster) > 1900
    assert [produce(cluster, index) for index in range(3)] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 3
    set_instance(cluster, limit_storage_bytes="2600")
    assert produce(cluster, 1) is ErrorCode.NONE
    wait_for_totals(cluster)
    assert produce(cluster, 0) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_room_on_one_broker_is_room_on_all(cluster: Cluster) -> None:
    set_instance(cluster, limit_storage_bytes="1300")
    cluster.create("shop.t", assignment=ONE_EACH)
    cluster.create("shop.u", assignment={0: [2]})
    for name, index in (("shop.t", 0), ("shop.u", 0)):
        leader = cluster.wait_for_leader(name, index)
        assert cluster.produce(leader, name, VALUE).error_code == 0
    wait_for_totals(cluster)
    assert produce(cluster, 0) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.delete("shop.u") == 0
    wait_for_totals(cluster)
    assert produce(cluster, 0) is ErrorCode.NONE


def test_followers_count_unless_the_property_says_otherwise(cluster: Cluster) -> None:
    set_instance(cluster, limit_storage_bytes="1000000")
    cluster.create("shop.t")
    leader = cluster.wait_for_leader("shop.t")
    assert cluster.produce(leader, "shop.t", VALUE).error_code == 0
    wait_for_totals(cluster)
    size_bytes = cluster.partition(leader, "shop.t").log.size_bytes
    assert total(cluster, leader) == 3 * size_bytes
    set_instance(cluster, limit_storage_bytes="1000000", limit_storage_counts="partitions")
    cluster.wait(lambda: all(total(cluster, node) == size_bytes for node in NODES), 10)


def test_the_limit_holds_while_the_controller_moves(cluster: Cluster) -> None:
    set_instance(cluster, limit_storage_bytes="1300")
    lost = cluster.controller()
    left = [node for node in NODES if node != lost]
    cluster.create("shop.t", assignment=dict(enumerate([left, left])))
    for index in range(2):
        leader = cluster.wait_for_leader("shop.t", index)
        assert cluster.produce(leader, "shop.t", b"v" * 300, index=index).error_code == 0
    wait_for_totals(cluster)
    known = total(cluster, left[0])
    cluster.kill(lost)
    while cluster.controller() < 0:
        cluster.turn()
        assert total(cluster, left[0]) == known
    assert (
        ErrorCode(cluster.produce(cluster.leader("shop.t"), "shop.t", VALUE).error_code)
        is ErrorCode.NOT_ENOUGH_REPLICAS
    )
    cluster.advance(3)
    assert all(total(cluster, node) == known for node in left)


def test_each_broker_records_its_part_of_the_usage(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (hours, recorder):
        monkeypatch.setattr(module, "HOUR_MS", 20_000)
    monkeypatch.setattr(recorder, "INTERVAL_MS", 2000)
    set_instance(cluster)
    cluster.create("shop.t", assignment=ONE_EACH)
    for index in range(3):
        cluster.wait_for_leader("shop.t", index)
        for _ in range(index + 1):
            assert produce(cluster, index) is ErrorCode.NONE

    def read() -> dict[int, int]:
        """The records that each broker says to have been produced."""
        counts: dict[int, int] = {}
        if USAGE_TOPIC in cluster.brokers[1].metadata.image.topics:
            for _, _, value in cluster.read_log(cluster.wait_for_leader(USAGE_TOPIC), USAGE_TOPIC):
                record: Any = json.loads(value or b"")
                counts[record["broker"]] = counts.get(record["broker"], 0) + record["produced_records"]
        return counts

    cluster.wait(lambda: read() == {1: 1, 2: 2, 3: 3}, 60)
