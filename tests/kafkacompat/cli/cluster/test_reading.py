"""What is read of a cluster, and by which requests."""

from __future__ import annotations

import pytest

from kafkacompat.cli.cluster import reading
from kafkacompat.cli.cluster.reading import ClusterDescription, PartitionDescription, read_cluster
from kafkacompat.cli.requests import NoResponseError
from kafkacompat.wire.apis.list_offsets import ListOffsetsRequest
from tests.kafkacompat.cli.cluster.fake_cluster import FakeCluster

BOOTSTRAP = [("127.0.0.1", 9092)]


@pytest.fixture
def cluster() -> FakeCluster:
    """One partition with three replicas and broker 1 as its leader."""
    fake = FakeCluster()
    fake.partitions["orders", 0] = (1, [1, 2, 3], [1, 2])
    fake.ends = {(1, "orders", 0): 100, (2, "orders", 0): 100, (3, "orders", 0): 40}
    return fake


def read(cluster: FakeCluster) -> ClusterDescription:
    view = read_cluster(BOOTSTRAP, cluster.connect)
    assert cluster.open == 0, "each connection is closed"
    return view


def read_partition(cluster: FakeCluster) -> PartitionDescription:
    (partition,) = read(cluster).partitions
    return partition


def test_brokers_leaders_and_lags(cluster: FakeCluster) -> None:
    view = read(cluster)
    assert (view.cluster_id, view.controller, list(view.brokers)) == ("the-cluster", 1, [1, 2, 3])
    (partition,) = view.partitions
    assert (partition.leader, partition.leader_epoch, partition.lags) == (1, 4, {2: 0, 3: 60})
    assert [broker.size_bytes for broker in view.brokers.values()] == [2000, 4000, 6000]


def test_leaders_are_asked_after_the_followers(cluster: FakeCluster) -> None:
    read(cluster)
    asked = [node_id for node_id, request in cluster.asked if isinstance(request, ListOffsetsRequest)]
    assert asked == [2, 3, 1]


def test_a_follower_beyond_its_leader_lacks_nothing(cluster: FakeCluster) -> None:
    cluster.ends[2, "orders", 0] = 120
    assert read_partition(cluster).lags[2] == 0


def test_partitions_are_in_order_and_asked_in_portions(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PARTITIONS_A_REQUEST", 2)
    for number in (2, 1, 3):
        cluster.partitions["orders", number] = (1, [1], [1])
        cluster.ends[1, "orders", number] = 5
    view = read(cluster)
    assert [partition.name.partition for partition in view.partitions] == [0, 1, 2, 3]
    sizes = [
        sum(len(topic.partitions) for topic in request.topics)
        for node_id, request in cluster.asked
        if node_id == 1 and isinstance(request, ListOffsetsRequest)
    ]
    assert sizes == [2, 2]


def test_offline_and_under_replicated_partitions(cluster: FakeCluster) -> None:
    cluster.partitions["orders", 1] = (-1, [3], [3])
    cluster.partitions["orders", 2] = (2, [2, 1], [2, 1])
    view = read(cluster)
    assert [partition.name.partition for partition in view.offline] == [1]
    assert [partition.name.partition for partition in view.under_replicated] == [0]
    assert view.partitions[1].lags == {3: None}


def test_replicas_that_a_reassignment_adds_are_not_missing(cluster: FakeCluster) -> None:
    cluster.adding["orders", 0] = [3]
    partition = read_partition(cluster)
    assert partition.adding == [3]
    assert not partition.is_under_replicated
    assert partition.lags[3] == 60


def test_a_broker_that_only_replica_lists_name_is_down(cluster: FakeCluster) -> None:
    cluster.live.remove(3)
    view = read(cluster)
    assert not view.brokers[3].is_registered
    assert view.partitions[0].lags == {2: 0, 3: None}


def test_a_fenced_broker_is_named(cluster: FakeCluster) -> None:
    cluster.live.remove(3)
    cluster.fenced.append(3)
    broker = read(cluster).brokers[3]
    assert (broker.is_fenced, broker.port, broker.problem) == (True, 9094, "it is fenced")


def test_a_broker_that_refuses_connections_has_unknown_lags(cluster: FakeCluster) -> None:
    cluster.down.add(3)
    view = read(cluster)
    assert (view.brokers[3].problem, view.brokers[3].size_bytes) == ("Connection refused", None)
    assert view.partitions[0].lags == {2: 0, 3: None}


def test_a_broker_that_stops_answering_has_a_problem(cluster: FakeCluster) -> None:
    cluster.silent.add(2)
    view = read(cluster)
    assert view.brokers[2].problem == "it does not answer within 10 s"
    assert view.partitions[0].lags == {2: None, 3: 60}


def test_a_controller_that_stops_answering_does_not_hide_the_others(cluster: FakeCluster) -> None:
    cluster.silent.add(1)
    view = read(cluster)
    assert (view.brokers[1].size_bytes, view.brokers[2].size_bytes) == (None, 4000)
    assert view.partitions[0].lags == {2: None, 3: None}


def test_a_leader_whose_end_is_unknown_leaves_the_lags_unknown(cluster: FakeCluster) -> None:
    del cluster.ends[1, "orders", 0]
    assert read_partition(cluster).lags == {2: None, 3: None}


@pytest.mark.parametrize(("leader", "controller"), [(None, 1), (3000, 3000)])
def test_the_controller_is_the_leader_of_the_quorum_where_there_is_one(
    cluster: FakeCluster, leader: int | None, controller: int
) -> None:
    cluster.quorum_leader = leader
    assert read(cluster).controller == controller


def test_failed_log_directories_are_named(cluster: FakeCluster) -> None:
    cluster.failed_dirs[2] = ["/broken"]
    assert read(cluster).brokers[2].failed_log_dirs == ["/broken"]


def test_the_next_bootstrap_server_is_asked(cluster: FakeCluster) -> None:
    cluster.down.add(1)
    assert read_cluster([*BOOTSTRAP, ("127.0.0.1", 9093)], cluster.connect).controller == 1
    with pytest.raises(NoResponseError, match=r"127\.0\.0\.1:9092: Connection refused; other:9093: Connection refused"):
        read_cluster([*BOOTSTRAP, ("other", 9093)], cluster.connect)
