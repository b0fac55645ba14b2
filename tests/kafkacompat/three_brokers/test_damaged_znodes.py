"""Znodes that another program has damaged: they cost what they describe, and nothing else."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.configs import CHANGES
from kafkacompat.metadata.znodes.configs import encode_config, encode_config_change
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import CHROOT, Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller

TOPIC, CONFIG = "/brokers/topics/{}", "/config/topics/{}"
STATE = f"{TOPIC}/partitions/0/state"


def put(cluster: Cluster, path: str, value: bytes) -> None:
    client = cluster.client_of(cluster.any_node())
    if cluster.run(client.exists(path)) is None:
        cluster.run(client.create(path, value, make_path=True))
    else:
        cluster.run(client.set(path, value))


def put_config(cluster: Cluster, topic: str, value: bytes) -> None:
    """Write a topic's configuration, and announce it."""
    put(cluster, CONFIG.format(topic), value)
    notification = encode_config_change(CONFIG.format(topic))
    client = cluster.client_of(cluster.any_node())
    cluster.run(client.create(f"{CHANGES}/config_change_", notification, sequence=True))
    cluster.advance(1)


def retention_ms(cluster: Cluster, topic: str) -> int | None:
    return cluster.partition(1, topic).log.config.retention_ms


def test_a_new_controller_leaves_a_damaged_topic_alone() -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.wait_for_leader("t")
    put(cluster, TOPIC.format("damaged"), b"{")
    cluster.kill(cluster.controller())
    wait_for_controller(cluster)
    leader = cluster.wait_for_leader("t")
    assert cluster.produce(leader, "t", b"x").error_code == 0
    cluster.create("new", replicas=2)
    assert cluster.try_create("damaged", replicas=2).error_code != 0


def test_a_damaged_config_leaves_the_last_sound_one_in_effect() -> None:
    cluster = Cluster(nodes=(1,))
    cluster.wait(lambda: cluster.controller() == 1)
    for topic in ("t", "u"):
        cluster.create(topic, replicas=1, retention_ms="5000000")
        cluster.wait_for_leader(topic)
    put_config(cluster, "t", b"{")
    put_config(cluster, "u", encode_config(CONFIG.format("u"), {"retention.ms": "6000000"}))
    assert (retention_ms(cluster, "t"), retention_ms(cluster, "u")) == (5_000_000, 6_000_000)
    # A lost session reads everything again.
    cluster.zookeeper.expire(cluster.client_of(1).session_id)
    cluster.advance(30)
    assert (retention_ms(cluster, "t"), retention_ms(cluster, "u")) == (5_000_000, 6_000_000)
    put_config(cluster, "t", encode_config(CONFIG.format("t"), {"retention.ms": "7000000"}))
    assert retention_ms(cluster, "t") == 7_000_000


@pytest.mark.parametrize("damaged", [TOPIC, STATE])
def test_a_broker_starts_beside_a_damaged_topic_and_keeps_its_records(
    damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(nodes=(1,), log_dirs="/data,/more")
    for topic in ("t", "u"):
        cluster.create(topic, replicas=1)
        cluster.wait_for_leader(topic)
        assert cluster.produce(1, topic, b"record").error_code == 0
    path = damaged.format("t")
    sound = cluster.zookeeper.contents()[f"{CHROOT}{path}"]
    put(cluster, path, b"{")
    cluster.stop(1)
    caplog.clear()
    cluster.start(1)
    lines = [record.getMessage() for record in caplog.records if record.name == "kafkacompat.metadata.codec"]
    assert len(lines) == 1
    assert lines[0].startswith(f"Left out topic t: the metadata is damaged at {path}: ")
    cluster.wait_for_leader("u")
    assert cluster.read(1, "u") == [b"record"]
    assert cluster.fetch(1, "t").error_code == ErrorCode.UNKNOWN_TOPIC_ID
    put(cluster, path, sound)
    cluster.stop(1)
    cluster.start(1)
    cluster.wait_for_leader("t")
    assert cluster.read(1, "t") == [b"record"]


def test_a_damaged_topic_that_is_repaired_comes_back_at_once() -> None:
    cluster = Cluster(nodes=(1,), log_dirs="/data,/more,/most")
    cluster.create("t", partitions=3, replicas=1)
    for index in range(3):
        cluster.wait_for_leader("t", index)
        assert cluster.produce(1, "t", b"record", index=index).error_code == 0
    sound = cluster.zookeeper.contents()[CHROOT + TOPIC.format("t")]
    put(cluster, TOPIC.format("t"), b"{")
    cluster.kill(1)
    cluster.start(1)
    assert "t" not in cluster.brokers[1].metadata.image.topics
    put(cluster, TOPIC.format("t"), sound)
    for index in range(3):
        cluster.wait_for_leader("t", index)
        assert cluster.read(1, "t", index=index) == [b"record"]


def test_a_broker_without_an_id_is_numbered_beside_a_damaged_topic() -> None:
    cluster = Cluster(nodes=(1,))
    put(cluster, TOPIC.format("t"), b"{")
    cluster.start(2, broker_id="-1")
    assert sorted(cluster.brokers[1].metadata.image.brokers) == [1, 1001]
