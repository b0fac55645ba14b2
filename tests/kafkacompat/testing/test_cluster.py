"""Clusters in the process of a test: brokers that stop, die and come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkacompat.testing
from kafkacompat.testing import BrokerError, RunningCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with kafkacompat.testing.cluster(3) as running:
        yield running


def test_a_killed_broker_loses_nothing_that_was_acknowledged(cluster: RunningCluster) -> None:
    cluster.create_topic("replicated", partitions=3, replicas=3, min_insync_replicas=2)
    cluster.produce("replicated", [("a", "1"), ("b", "2"), ("c", "3")])
    cluster.kill_broker(1)
    assert list(cluster.brokers) == [2, 3]
    cluster.produce("replicated", [("a", "4"), ("b", "5"), ("c", "6")])
    cluster.start_broker(1)
    cluster.stop_broker(2)
    cluster.produce("replicated", ["7"])
    assert sorted(record.value or b"" for record in cluster.records("replicated", 7)) == [
        b"%d" % n for n in range(1, 8)
    ]
    cluster.start_broker(2)
    assert list(cluster.brokers) == [1, 2, 3]


def test_a_broker_that_was_started_again_has_its_address_and_is_in_sync(cluster: RunningCluster) -> None:
    cluster.create_topic("in-sync", replicas=3)
    before = cluster.bootstrap_servers
    cluster.kill_broker(3)
    cluster.start_broker(3)
    image = cluster.call(lambda: cluster.brokers[3].metadata.image.topics["in-sync"].partitions[0])
    assert sorted(image.in_sync_replicas) == [1, 2, 3]
    assert before.split(",")[2] in cluster.bootstrap_servers


def test_brokers_that_do_not_exist_or_run(cluster: RunningCluster) -> None:
    with pytest.raises(BrokerError, match="there is no broker 4 in this cluster: its brokers are 1, 2, 3"):
        cluster.stop_broker(4)
    with pytest.raises(BrokerError, match="a cluster of 0 brokers: give a number from 1 to 100"):
        kafkacompat.testing.cluster(0)


def test_each_broker_has_a_listener_for_each_release() -> None:
    with kafkacompat.testing.cluster(2, releases=iter(["2.8"])) as kafka:
        assert len(kafka.release("2.8").split(",")) == 2


def test_data_in_a_folder_outlive_a_broker(tmp_path: Path) -> None:
    with kafkacompat.testing.broker(tmp_path) as kafka:
        kafka.create_topic("t", partitions=2)
        kafka.produce("t", ["a", "b"])
    with kafkacompat.testing.broker(tmp_path) as kafka:
        assert [record.value for record in kafka.records("t")] == [b"a", b"b"]
        with pytest.raises(BrokerError, match=r"the broker cannot start: .* is in use by another broker"):
            kafkacompat.testing.broker(tmp_path)


def test_a_killed_broker_on_a_folder_recovers(tmp_path: Path) -> None:
    with kafkacompat.testing.cluster(2, tmp_path) as kafka:
        kafka.create_topic("t", replicas=2)
        kafka.produce("t", ["a"])
        kafka.kill_broker(1)
        kafka.start_broker(1)
        kafka.kill_broker(2)
        assert [record.value for record in kafka.records("t", 1)] == [b"a"]


def test_a_killed_broker_leaves_no_worker_behind(tmp_path: Path) -> None:
    with kafkacompat.testing.cluster(1, tmp_path) as running:
        conversions: Any = running.brokers[1].conversions
        running.call(conversions._workers.run, lambda _: None)
        running.kill_broker(1)
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("conversion")]


def test_a_killed_broker_writes_nothing_at_its_end(tmp_path: Path) -> None:
    with kafkacompat.testing.cluster(1, tmp_path) as running:
        running.create_topic("t")
        running.produce("t", ["kept"])
        folder = tmp_path / "1" / "t-0"
        before = sorted(path.name for path in folder.iterdir())
        running.kill_broker(1)
        assert sorted(path.name for path in folder.iterdir()) == before
        running.start_broker(1)
        assert [record.value for record in running.records("t", 1)] == [b"kept"]
