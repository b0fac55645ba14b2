"""Topics of three brokers: created, grown, deleted, moved, configured, and hit by failed disks."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafkacompat.cluster.active_controller import ActiveController
from kafkacompat.cluster.broadcasts import WAIT_S
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.cluster.orders import LeaderAndIsrType
from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import CHROOT, NODES, Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller
from tests.kafkacompat.three_brokers.test_leaders import assert_replicas_agree, produce_some

TOPIC = 2
SET = 0


def active(cluster: Cluster) -> ActiveController:
    controller = cluster.side(cluster.controller()).member._active
    assert controller is not None
    return controller


def reassign(cluster: Cluster, topic: str, replicas: list[int] | None, index: int = 0) -> Any:
    key = TopicPartition(topic, index)
    return cluster.run(active(cluster).reassign_partitions({key: replicas}))[key]


def has_folder(cluster: Cluster, node: int, name: str) -> bool:
    return name in cluster.files[node].list("/data")


def test_topics_grow() -> None:
    cluster = Cluster()
    cluster.create("t")
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=20_000
    )
    assert cluster.ask(cluster.controller(), request).results[0].error_code == 0
    for index in range(5):
        cluster.wait_for_leader("t", index)
        produce_some(cluster, "t", [b"0"], index)


def test_a_topic_is_deleted() -> None:
    cluster = Cluster()
    old = cluster.create("t", partitions=2)
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    assert cluster.delete("t") == 0
    cluster.wait(lambda: all("t" not in broker.metadata.image.topics for broker in cluster.brokers.values()))
    cluster.advance(1)
    assert not cluster.zookeeper.contents().keys() & {
        f"{CHROOT}/{folder}/t" for folder in ("brokers/topics", "config/topics", "admin/delete_topics")
    }
    assert not any(has_folder(cluster, node, "t-0") for node in NODES)
    assert cluster.create("t", partitions=2) != old
    cluster.wait_for_leader("t")
    assert cluster.read(cluster.leader("t"), "t") == []
    produce_some(cluster, "t", [b"new"])
    assert_replicas_agree(cluster, "t")


def test_a_topic_that_is_being_deleted_does_not_grow() -> None:
    """Its deletion would wait for replicas of the new partitions, which nobody was requested to delete."""
    cluster = Cluster()
    away = next(node for node in NODES if node != cluster.controller())
    cluster.create("t")
    cluster.wait_for_leader("t")
    cluster.kill(away)
    cluster.wait(lambda: away not in cluster.image("t").in_sync_replicas)
    assert cluster.delete("t") == 0
    wanted = [CreatePartitionsTopic(name="t", count=2, assignments=None)]
    answer = cluster.ask(cluster.controller(), CreatePartitionsRequest(topics=wanted, timeout_ms=20_000))
    assert answer.results[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    cluster.start(away)
    cluster.wait(lambda: f"{CHROOT}/brokers/topics/t" not in cluster.zookeeper.contents())


@pytest.mark.parametrize("controller_dies", [False, True])
def test_a_deletion_waits_for_an_absent_replica(controller_dies: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster = Cluster()
    away = next(node for node in NODES if node != cluster.controller())
    cluster.create("t")
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.kill(away)
    cluster.wait(lambda: away not in cluster.image("t").in_sync_replicas)
    began_s = cluster.clock.seconds()
    assert cluster.delete("t") == 0
    assert cluster.clock.seconds() - began_s < 1
    reason = f"The deletion of topic t waits: replicas on broker(s) {away} could not be deleted"
    assert caplog.messages.count(reason) == 1
    assert all("t" not in broker.metadata.image.topics for broker in cluster.brokers.values())
    assert f"{CHROOT}/admin/delete_topics/t" in cluster.zookeeper.contents()
    assert cluster.try_create("t", replicas=2).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    if controller_dies:
        cluster.kill(first := cluster.controller())
        wait_for_controller(cluster, but=first)
        cluster.start(first)
    assert has_folder(cluster, away, "t-0")
    cluster.start(away)
    cluster.wait(lambda: f"{CHROOT}/admin/delete_topics/t" not in cluster.zookeeper.contents())
    assert f"{CHROOT}/brokers/topics/t" not in cluster.zookeeper.contents()
    assert not any(has_folder(cluster, node, "t-0") for node in NODES)
    cluster.create("t")
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"new"])
    assert cluster.read(cluster.leader("t"), "t") == [b"new"]


def test_an_answer_of_a_broker_s_earlier_life_does_not_end_its_deletion() -> None:
    """An order for that life reaches the new one, which rejects it, before the controller knows that it has started."""
    cluster = Cluster()
    controller = cluster.controller()
    slow = next(node for node in NODES if node != controller)
    cluster.create("t")
    cluster.wait_for_leader("t")
    cluster.network.cut(f"broker-{controller}", f"broker-{slow}")
    assert cluster.delete("t") == 0
    earlier = active(cluster).image.brokers[slow]
    earlier = earlier._replace(epoch=earlier.epoch - 1)
    active(cluster)._on_deletion_answers(earlier, {TopicPartition("t", 0): ErrorCode.STALE_BROKER_EPOCH})
    cluster.advance(1)
    cluster.network.heal(f"broker-{controller}", f"broker-{slow}")
    cluster.wait(lambda: f"{CHROOT}/admin/delete_topics/t" not in cluster.zookeeper.contents())
    assert not any(has_folder(cluster, node, "t-0") for node in NODES)


def test_a_deletion_waits_a_while_for_a_broker_that_does_not_answer() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    silent = next(node for node in NODES if node != controller)
    cluster.create("t")
    cluster.wait_for_leader("t")
    cluster.network.cut(f"broker-{controller}", f"broker-{silent}")
    began_s = cluster.clock.seconds()
    assert cluster.delete("t") == 0
    assert WAIT_S <= cluster.clock.seconds() - began_s < WAIT_S + 1
    cluster.network.heal(f"broker-{controller}", f"broker-{silent}")
    cluster.wait(lambda: f"{CHROOT}/brokers/topics/t" not in cluster.zookeeper.contents())
    assert not has_folder(cluster, silent, "t-0")


@pytest.mark.parametrize("timeout_ms", [0, 8000])
def test_a_topic_that_is_being_reassigned_is_not_deleted_in_the_request_s_time(timeout_ms: int) -> None:
    cluster = Cluster()
    controller = cluster.controller()
    other, away = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [controller, other]})
    cluster.wait_for_leader("t")
    cluster.network.cut(f"broker-{controller}", f"broker-{away}")
    assert reassign(cluster, "t", [controller, away]) is None
    began_s = cluster.clock.seconds()
    assert cluster.delete("t", timeout_ms) == ErrorCode.REQUEST_TIMED_OUT
    assert timeout_ms / 1000 <= cluster.clock.seconds() - began_s < timeout_ms / 1000 + 1
    produce_some(cluster, "t", [b"0"])
    cluster.network.heal(f"broker-{controller}", f"broker-{away}")
    cluster.wait(lambda: f"{CHROOT}/brokers/topics/t" not in cluster.zookeeper.contents())


def test_folders_of_no_topic_are_set_aside_when_the_controller_has_named_all_replicas() -> None:
    cluster = Cluster()
    away = next(node for node in NODES if node != cluster.controller())
    cluster.create("t")
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"record"])
    cluster.wait_for_in_sync("t", NODES)
    cluster.stop(away)
    files = cluster.files[away]
    for folder in ("gone-0", "gone-1.0123456789abcdef0123456789abcdef-future"):
        files.make_directory(f"/data/{folder}")
        for name in files.list("/data/t-0"):
            replace_file(files, f"/data/{folder}/{name}", files.read(f"/data/t-0/{name}"))
    cluster.start(away)
    cluster.wait_for_in_sync("t", NODES)
    cluster.wait(lambda: not any(name.endswith("future") for name in files.list("/data")))
    names = sorted(files.list("/data"))
    assert [name.startswith("gone-") and name.endswith("-stray") for name in names if "gone" in name] == [True, True]
    assert "t-0" in names


def test_a_replica_of_an_earlier_topic_of_the_name_is_set_aside() -> None:
    cluster = Cluster()
    away = next(node for node in NODES if node != cluster.controller())
    cluster.create("t", assignment={0: [away, *(node for node in NODES if node != away)]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"old", b"old too"])
    cluster.kill(away)
    others = [node for node in NODES if node != away]
    cluster.wait(lambda: cluster.leader("t") in others)
    assert reassign(cluster, "t", others) is None
    cluster.wait(lambda: cluster.image("t").replicas == tuple(others))
    assert cluster.delete("t") == 0
    cluster.wait(lambda: f"{CHROOT}/brokers/topics/t" not in cluster.zookeeper.contents())
    cluster.create("t", assignment={0: [*others]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"new"])
    cluster.start(away)
    cluster.wait(lambda: not has_folder(cluster, away, "t-0"))
    assert any("t-0." in name and name.endswith("stray") for name in cluster.files[away].list("/data"))
    assert reassign(cluster, "t", [away, *others]) is None
    cluster.wait_for_in_sync("t", NODES)
    assert_replicas_agree(cluster, "t")
    assert [value for _, _, value in cluster.read_log(away, "t")] == [b"new"]


def test_replicas_are_reassigned() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1, 2]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0", b"1"])
    assert reassign(cluster, "t", [3, 2]) is None
    cluster.wait(lambda: cluster.image("t", node=2).replicas == (3, 2) and not cluster.image("t", node=2).is_reassigned)
    assert cluster.wait_for_leader("t", but=[1]) in (2, 3)
    produce_some(cluster, "t", [b"2"])
    cluster.wait_for_in_sync("t", [2, 3])
    cluster.wait(lambda: not has_folder(cluster, 1, "t-0"))
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1", b"2"]
    assert cluster.read_log(3, "t") == cluster.read_log(2, "t")


def test_a_reassignment_is_cancelled() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    other, away = [node for node in NODES if node != controller]
    cluster.create("t", assignment={0: [controller, other]})
    cluster.wait_for_leader("t")
    cluster.network.cut(f"broker-{controller}", f"broker-{away}")
    assert reassign(cluster, "t", [controller, away]) is None
    cluster.advance(6)
    assert set(cluster.image("t", node=other).replicas) == set(NODES)
    assert reassign(cluster, "t", None) is None
    cluster.network.heal(f"broker-{controller}", f"broker-{away}")
    cluster.wait(lambda: all(set(cluster.image("t", node=node).replicas) == {controller, other} for node in NODES))
    cluster.wait(lambda: not has_folder(cluster, away, "t-0"))
    produce_some(cluster, "t", [b"0"])
    cluster.wait_for_in_sync("t", [controller, other])


@pytest.mark.parametrize("at", ["controller", "another"])
def test_configurations_reach_all_brokers(at: str) -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.wait_for_leader("t")
    change = AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[
            AlterableConfig(name=name, config_operation=SET, value=value)
            for name, value in (("retention.ms", "12345"), ("min.insync.replicas", "3"))
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[change])
    answer = cluster.ask(cluster.controller(), request)
    assert answer.responses[0].error_code == 0
    if at == "another":
        cluster.kill(first := cluster.controller())
        cluster.start(first)

    def is_known(node: int) -> bool:
        config = cluster.partition(node, "t").log.config
        return (config.retention_ms, config.min_insync_replicas) == (12345, 3)

    cluster.wait(lambda: all(is_known(node) for node in NODES))
    leader = cluster.wait_for_leader("t")
    cluster.wait_for_in_sync("t", NODES)
    cluster.kill(next(node for node in NODES if node != leader))
    cluster.wait_for_in_sync("t", list(cluster.brokers))
    assert cluster.produce(cluster.leader("t"), "t", b"0").error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_other_brokers_partitions_are_known_to_be_elsewhere() -> None:
    cluster = Cluster()
    cluster.create("t", assignment={0: [1]})
    cluster.wait_for_leader("t")
    cluster.wait(lambda: cluster.image("t", node=3) is not None)
    assert cluster.produce(3, "t", b"0").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.fetch(3, "t").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_sole_replica_takes_no_writes_before_its_controller_says_so() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    node = next(node for node in NODES if node != controller)
    cluster.create("t", assignment={0: [node]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    cluster.kill(node)
    cluster.network.cut(f"broker-{controller}", f"broker-{node}")
    cluster.start(node)
    assert not cluster.partition(node, "t").is_leader
    cluster.network.heal(f"broker-{controller}", f"broker-{node}")
    cluster.wait_for_leader("t", seconds=90)
    assert cluster.read(node, "t") == [b"0"]


@pytest.mark.parametrize("which", ["leader", "follower"])
def test_a_log_directory_fails(which: str) -> None:
    cluster = Cluster(log_dirs="/data,/more")
    cluster.create("t", assignment={0: [1, 2, 3]})
    cluster.create("u", assignment={0: [1, 2, 3]})
    for topic in "tu":
        cluster.wait_for_leader(topic)
        produce_some(cluster, topic, [b"0"])
    node = 1 if which == "leader" else 2
    fail_directory(cluster, node, "t")
    assert cluster.partition(node, "u").is_leader == (node == 1)
    second = cluster.wait_for_leader("t", but=[node])
    cluster.wait_for_in_sync("t", [other for other in NODES if other != node])
    assert cluster.produce(second, "t", b"1").error_code == 0
    assert cluster.wait_for_leader("u") == 1
    cluster.wait(lambda: cluster.image("t", node=3).offline_replicas == (node,))
    assert not [
        path for path in cluster.zookeeper.contents() if path.startswith(f"{CHROOT}/log_dir_event_notification/")
    ]
    cluster.kill(cluster.controller())
    wait_for_controller(cluster)
    cluster.advance(3)
    for other in NODES:
        if other not in cluster.brokers:
            cluster.start(other)
    if node in cluster.brokers:
        cluster.kill(node)
    cluster.start(node)
    cluster.wait_for_leader("t")
    assert_replicas_agree(cluster, "t")
    assert cluster.read(cluster.leader("t"), "t") == [b"0", b"1"]


def fail_directory(cluster: Cluster, node: int, topic: str) -> None:
    replicas = cluster.brokers[node].replica_manager
    home = replicas.directories.find_home((topic, 0))
    assert home is not None
    home.report_failure(OSError(errno.EIO, "the disk is broken"))


def test_a_controller_dies_between_the_pieces_of_a_large_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkacompat.metadata.zookeeper_plan.MAX_REQUEST_BYTES", 20_000)
    cluster = Cluster()
    first = cluster.controller()
    client: Any = cluster.client_of(first)
    original, seen = client.multi, [0]
    left: list[int] = []

    def die_at_the_second(operations: Any) -> Any:
        seen[0] += any("/partitions/" in operation.path for operation in operations)
        if seen[0] == 2:
            cluster.clock.callLater(0, die)
        return original(operations)

    def count_states() -> int:
        return sum(path.endswith("/state") for path in cluster.zookeeper.contents())

    def die() -> None:
        left.append(count_states())
        cluster.kill(first)

    client.multi = die_at_the_second
    request = cluster.build_create("t", partitions=200)
    cluster.send(first, request, timeout_s=20).addErrback(lambda failure: None)
    cluster.wait(lambda: first not in cluster.brokers)
    assert 0 < left[0] < 200
    wait_for_controller(cluster, but=first)
    cluster.wait(lambda: count_states() == 200, seconds=20)
    cluster.ids["t"] = cluster.brokers[cluster.any_node()].metadata.image.topics["t"].topic_id
    for index in (0, 100, 199):
        cluster.wait_for_leader("t", index, but=[first])
        produce_some(cluster, "t", [b"0"], index)


def test_a_partition_of_the_cluster_is_never_set_aside() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    node = next(node for node in NODES if node != controller)
    cluster.create("t", assignment={0: [node, controller]})
    cluster.wait_for_leader("t")
    produce_some(cluster, "t", [b"0"])
    epoch = cluster.side(node).member.fence.controller_epoch
    cluster.kill(node)
    cluster.network.cut(f"broker-{controller}", f"broker-{node}")
    cluster.start(node)
    naming_nothing = LeaderAndIsrRequest(
        controller_id=controller,
        controller_epoch=epoch,
        broker_epoch=cluster.side(node).member.registration.epoch,
        type=LeaderAndIsrType.ALL,
    )
    assert cluster.ask(node, naming_nothing).error_code == 0
    assert cluster.partition(node, "t").log.log_end_offset == 1
    cluster.network.heal(f"broker-{controller}", f"broker-{node}")
    cluster.wait_for_in_sync("t", [controller, node])
    assert cluster.read_log(node, "t") == cluster.read_log(controller, "t")


def test_a_topic_is_created_while_a_replica_is_away() -> None:
    cluster = Cluster()
    controller = cluster.controller()
    away, other = [node for node in NODES if node != controller]
    cluster.kill(away)
    cluster.wait(lambda: away not in cluster.brokers[controller].metadata.image.brokers)
    response = cluster.try_create("t", assignment={0: [away, other, controller]})
    if response.error_code == 0:
        cluster.ids["t"] = response.topic_id
        assert cluster.wait_for_leader("t") in (other, controller)
        produce_some(cluster, "t", [b"0"])
        cluster.start(away)
        assert_replicas_agree(cluster, "t")
    else:
        assert response.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
