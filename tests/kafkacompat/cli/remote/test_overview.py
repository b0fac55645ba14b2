"""`kafkacompat brokers` and `status`, against the fake cluster of `kafkacompat cluster status`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.remote import running
from kafkacompat.cli.remote.cluster import RemoteCluster
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.schema import Request, Response
from tests.kafkacompat.cli.cluster.fake_cluster import FIRST_PORT, FakeCluster


class ClusterWithGroups(FakeCluster):
    """Brokers that list a group each."""

    def answer(self, node_id: int, request: Request) -> Response:
        if isinstance(request, ListGroupsRequest):
            state = "Stable" if node_id == 1 else "Empty"
            return ListGroupsResponse(groups=[ListedGroup(group_id=f"g{node_id}", group_state=state)])
        return super().answer(node_id, request)

    def _answer_metadata(self, node_id: int, request: object) -> Response:
        # `status` reads the brokers alone as well.
        request.topics = None  # type: ignore[attr-defined]
        return super()._answer_metadata(node_id, request)  # type: ignore[arg-type]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterWithGroups:
    fake = ClusterWithGroups()
    fake.partitions = {("t", 0): (1, [1, 2], [1, 2]), ("t", 1): (2, [2, 3], [2, 3])}
    fake.ends = {(node_id, "t", partition): 5 for node_id in (1, 2, 3) for partition in (0, 1)}

    def connect_cluster(_target: object) -> RemoteCluster:
        return RemoteCluster([("127.0.0.1", FIRST_PORT + 1)], fake.connect)

    monkeypatch.setattr(running, "connect_cluster", connect_cluster)
    return fake


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--bootstrap-server", "127.0.0.1:9092"], catch_exceptions=False)


def test_a_sound_cluster(cluster: ClusterWithGroups) -> None:
    result = run("status")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Cluster the-cluster, controller 1"
    assert lines[1].split() == [
        *("broker", "address", "rack", "state", "leaders", "replicas", "in_sync", "lag", "bytes", "problem")
    ]
    assert lines[-2:] == ["2 partitions: 0 offline, 0 under-replicated", "3 groups: 2 Empty, 1 Stable"]
    assert cluster.open == 0


def test_partitions_that_need_attention(cluster: ClusterWithGroups) -> None:
    cluster.partitions = {("t", 0): (-1, [1, 2], []), ("t", 1): (2, [2, 3], [2])}
    result = run("status", "--json")
    described = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (described["offline_partitions"], described["under_replicated_partitions"]) == (1, 2)
    assert described["groups"] == {"Empty": 2, "Stable": 1}
    lines = run("status").stdout.splitlines()
    assert {"Offline partitions", "Under-replicated partitions"} < set(lines)
    assert "2 partitions: 1 offline, 2 under-replicated" in lines


def test_a_broker_that_cannot_be_reached_is_shown(cluster: ClusterWithGroups) -> None:
    cluster.down = {3}
    described = json.loads(run("status", "--json").stdout)
    assert described["groups"] is None
    brokers = json.loads(run("brokers", "--json").stdout)
    assert [(broker["node_id"], broker["problem"]) for broker in brokers] == [
        (1, ""),
        (2, ""),
        (3, "Connection refused"),
    ]
    assert run("status").stdout.splitlines()[-1] == "The groups cannot be listed"
