"""Brokers that come back without a disk, or without the end of their logs."""

from __future__ import annotations

from itertools import permutations

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller
from tests.kafkacompat.three_brokers.test_leaders import assert_replicas_agree, produce_some
from tests.kafkacompat.three_brokers.test_lost_controllers import alter_config

RECORDS = [b"0", b"1", b"2"]


def build_cluster(replicas: int = 3) -> Cluster:
    """Three brokers with a topic whose records all replicas have; the first replica, broker 1, leads."""
    cluster = Cluster(auto_leader_rebalance_enable="false")
    cluster.create("t", assignment={0: NODES[:replicas]})
    assert cluster.wait_for_leader("t") == 1
    produce_some(cluster, "t", RECORDS)
    cluster.wait_for_in_sync("t", NODES[:replicas])
    cluster.advance(3)
    return cluster


def kill_all(cluster: Cluster) -> None:
    for node in NODES:
        cluster.kill(node)


def read_all(cluster: Cluster) -> list[bytes | None]:
    """Read what consumers can see once the followers have shown what they have."""
    cluster.wait_for_leader("t")
    cluster.advance(2)
    return cluster.read(cluster.wait_for_leader("t"), "t")


@pytest.mark.parametrize("ends", ["killed", "stopped"])
@pytest.mark.parametrize("order", [*permutations(NODES)])
def test_a_replica_whose_disk_is_new_does_not_lead_while_others_have_the_records(
    order: tuple[int, ...], ends: str
) -> None:
    cluster = build_cluster()
    if ends == "killed":
        kill_all(cluster)
    else:
        # The last broker in sync stops last, so that only it may lead.
        for node in (3, 2, 1):
            cluster.stop(node)
    lost = 1 if ends == "killed" else 3
    cluster.lose_disk(lost)
    for node in order:
        cluster.start(node)
        cluster.advance(1)
    assert read_all(cluster) == RECORDS
    assert_replicas_agree(cluster, "t")
    assert [value for _, _, value in cluster.read_log(lost, "t")] == RECORDS
    # The next start has nothing to refuse.
    cluster.kill(lost)
    cluster.wait_for_leader("t", but=[lost])
    cluster.start(lost)
    assert_replicas_agree(cluster, "t")


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_only_in_sync_replica_does_not_lead_without_its_disk(
    replicas: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = build_cluster(replicas)
    for node in (3, 2, 1) if replicas == 3 else (1,):
        cluster.stop(node)
    disk = cluster.files[1]
    cluster.lose_disk(1)
    for _ in range(2):
        # A second start does not take the new directory for a known one.
        caplog.clear()
        for node in NODES:
            if node not in cluster.brokers:
                cluster.start(node)
        cluster.advance(3)
        assert {cluster.leader("t", node=node) for node in NODES} == {-1}
        assert cluster.produce(1, "t", b"x").error_code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.KAFKA_STORAGE_ERROR,
        )
        lines = [record.getMessage() for record in caplog.records if record.name == "kafkacompat.cluster.losses"]
        assert len(lines) == 1
        assert "1 partitions of this broker have no folder in any: t-0; mount the disk" in lines[0]
        cluster.kill(1)
    cluster.files[1] = disk
    cluster.start(1)
    assert cluster.wait_for_leader("t") == 1
    assert cluster.read(1, "t") == RECORDS


@pytest.mark.parametrize("loses", ["its disk", "its power"])
def test_brokers_that_are_back_at_once_stay_in_sync_although_a_dead_one_is_registered(loses: str) -> None:
    """All are killed. The machine of the leader is back last, after its session has ended."""
    cluster = build_cluster()
    for node in NODES:
        cluster.kill(node, expire=False, lose_unsynced=node == 1)
    if loses == "its disk":
        cluster.lose_disk(1)
    for node in (2, 3):
        cluster.start(node)
    cluster.advance(25)
    cluster.start(1)
    assert read_all(cluster) == RECORDS
    assert_replicas_agree(cluster, "t")


def test_a_new_controller_does_not_let_a_lost_replica_lead() -> None:
    cluster = build_cluster()
    kill_all(cluster)
    cluster.lose_disk(1)
    cluster.start(1)
    wait_for_controller(cluster)
    cluster.zookeeper.expire(cluster.client_of(1).session_id)
    cluster.advance(5)
    assert cluster.image("t").leader == -1
    for node in (2, 3):
        cluster.start(node)
    assert read_all(cluster) == RECORDS
    assert_replicas_agree(cluster, "t")


def test_the_only_replica_of_a_topic_begins_empty_if_unclean_elections_are_allowed() -> None:
    cluster = build_cluster(replicas=1)
    cluster.kill(1)
    cluster.lose_disk(1)
    cluster.start(1)
    cluster.advance(2)
    assert cluster.leader("t") == -1
    change = alter_config(ResourceType.TOPIC, "t", "unclean.leader.election.enable", "true")
    assert cluster.ask(cluster.controller(), change).responses[0].error_code == 0
    cluster.kill(1)
    cluster.start(1)
    assert read_all(cluster) == []
    produce_some(cluster, "t", [b"new"])


def test_another_replica_leads_uncleanly_instead_of_a_lost_one() -> None:
    cluster = build_cluster()
    for node in (2, 3):
        cluster.kill(node)
    cluster.wait_for_in_sync("t", [1])
    cluster.kill(1)
    cluster.lose_disk(1)
    for node in NODES:
        cluster.start(node)
    cluster.advance(2)
    assert cluster.leader("t") == -1
    change = alter_config(ResourceType.TOPIC, "t", "unclean.leader.election.enable", "true")
    assert cluster.ask(cluster.controller(), change).responses[0].error_code == 0
    assert cluster.wait_for_leader("t") in (2, 3)
    assert read_all(cluster) == RECORDS
    assert_replicas_agree(cluster, "t")


def test_a_partition_whose_folder_was_never_synced_begins_empty() -> None:
    cluster = Cluster(nodes=(1,))
    cluster.create("old", replicas=1)
    cluster.wait_for_leader("old")
    cluster.advance(5)
    cluster.create("t", replicas=1)
    cluster.wait_for_leader("t")
    cluster.kill(1, lose_unsynced=True)
    assert not cluster.files[1].exists("/data/t-0")
    cluster.start(1)
    cluster.wait_for_leader("old")
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])


def test_a_new_broker_and_a_new_log_directory_lose_nothing(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(nodes=(1, 2))
    cluster.create("t", assignment={0: [1, 2]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", RECORDS)
    cluster.start(3)
    for node in (1, 2):
        cluster.stop(node)
        cluster.start(node, log_dirs="/data,/more")
    assert read_all(cluster) == RECORDS
    assert_replicas_agree_on(cluster, [1, 2])
    assert "kafkacompat.cluster.losses" not in {record.name for record in caplog.records}


def assert_replicas_agree_on(cluster: Cluster, nodes: list[int]) -> None:
    cluster.wait_for_in_sync("t", nodes)
    assert cluster.read_log(1, "t") == cluster.read_log(2, "t")


@pytest.mark.parametrize("level", ["kafka", "fsync"])
@pytest.mark.parametrize("failed", NODES)
def test_of_brokers_that_are_back_together_the_one_without_its_page_cache_does_not_lead(
    failed: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(auto_leader_rebalance_enable="false", kafkacompat_acks_after=level)
    cluster.create("t", assignment={0: NODES})
    cluster.wait_for_leader("t")
    cluster.advance(3)
    produce_some(cluster, "t", RECORDS)
    for node in NODES:
        cluster.kill(node, lose_unsynced=node == failed, expire=False)
    cluster.advance(20)
    # All are registered before the first of them is the controller.
    starts = [cluster.begin(node) for node in sorted(NODES, key=lambda node: node == failed)]
    for start in starts:
        cluster.run(start)
    assert read_all(cluster) == RECORDS
    assert_replicas_agree(cluster, "t")
    warned = any("records that were not on the disk are lost" in record.message for record in caplog.records)
    assert warned == (level == "kafka")


def test_a_broker_names_the_partitions_for_which_no_other_replica_is_in_sync(caplog: pytest.LogCaptureFixture) -> None:
    cluster = build_cluster()
    cluster.create("alone", assignment={0: [1], 1: [2]})
    cluster.wait_for_leader("alone", 0)
    kill_all(cluster)
    caplog.clear()
    cluster.boots[1] += 1
    for node in NODES:
        cluster.start(node)
    lines = [record.getMessage() for record in caplog.records if record.name == "kafkacompat.cluster.losses"]
    assert len(lines) == 1
    assert lines[0].endswith("No other replica is in sync for 1 of its partitions: alone-0")
    registered = cluster.zookeeper.contents()[f"{CHROOT}/brokers/ids/1"]
    assert b'"lacks_records":1' in registered
    # The controller knows, so that the next registration does not repeat it.
    cluster.zookeeper.expire(cluster.client_of(1).session_id)
    cluster.advance(5)
    assert b'"lacks_records":0' in cluster.zookeeper.contents()[f"{CHROOT}/brokers/ids/1"]
