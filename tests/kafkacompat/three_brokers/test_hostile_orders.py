"""Orders that no controller sends: refused, without a folder, a role or much memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkacompat.wire.apis.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from kafkacompat.wire.apis.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from kafkacompat.wire.apis.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import Cluster

NEW_ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"
HUGE = 2**31 - 1
BAD_NAMES = ("../../outside", "a/b", "..", ".", "", "x" * 250, "nul\0", "a b", "__cluster_metadata")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One broker that leads a topic."""
    cluster = Cluster(nodes=(1,))
    cluster.wait(lambda: cluster.controller() == 1)
    cluster.create("t", replicas=1)
    cluster.wait_for_leader("t")
    yield cluster


def assign(cluster: Cluster, name: str, topic_id: bytes = NEW_ID, **fields: Any) -> int:
    """Send LeaderAndIsr for one partition, and return its code."""
    state = {"partition_index": 0, "leader": 1, "leader_epoch": 0, "isr": [1], "partition_epoch": 0, "replicas": [1]}
    partition = LeaderAndIsrPartitionState(**{"controller_epoch": 1, **state, **fields})
    topic = LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=[partition])
    request = LeaderAndIsrRequest(
        controller_id=1, controller_epoch=1, broker_epoch=-1, type=1, topic_states=[topic], live_leaders=[]
    )
    response = cluster.ask(1, request)
    assert response.error_code == 0
    return int(response.topics[0].partition_errors[0].error_code)


def update(
    cluster: Cluster, name: str, topic_id: bytes = NEW_ID, index: int = 0, broker: UpdateMetadataBroker | None = None
) -> int:
    """Send UpdateMetadata for one partition, and return its code."""
    partition = UpdateMetadataPartitionState(
        partition_index=index,
        controller_epoch=1,
        leader=1,
        leader_epoch=0,
        isr=[1],
        zk_version=0,
        replicas=[1],
        offline_replicas=[],
    )
    topic = UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=[partition])
    request = UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=1,
        broker_epoch=-1,
        topic_states=[topic],
        live_brokers=[broker or build_broker()],
    )
    return int(cluster.ask(1, request).error_code)


def build_broker(node_id: int = 1, port: int = 9092, protocol: int = 0) -> UpdateMetadataBroker:
    endpoint = UpdateMetadataEndpoint(host="broker-1", port=port, listener="PLAINTEXT", security_protocol=protocol)
    return UpdateMetadataBroker(id=node_id, endpoints=[endpoint])


def assert_unharmed(cluster: Cluster) -> None:
    """Check that the topic serves, and that nothing else has come into being."""
    assert cluster.produce(1, "t", b"x").error_code == 0
    names = cluster.files[1].list("/data")
    folders = [name for name in names if "-" in name and not name.endswith(("checkpoint", ".json"))]
    assert folders == ["t-0"]
    assert [partition.topic for partition in cluster.brokers[1].replica_manager] == ["t"]
    assert [*cluster.brokers[1].metadata.image.topics] == ["t"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_no_topic_may_have_becomes_no_folder(cluster: Cluster, name: str) -> None:
    assert assign(cluster, name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert update(cluster, name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert_unharmed(cluster)


@pytest.mark.parametrize(
    "fields",
    [
        {"partition_index": -1},
        {"leader_epoch": -1},
        {"partition_epoch": -9},
        {"replicas": [1, -1]},
        {"isr": [-5], "leader": 2},
    ],
    ids=str,
)
def test_a_negative_number_is_refused(cluster: Cluster, fields: dict[str, Any]) -> None:
    assert assign(cluster, "new", **fields) == ErrorCode.INVALID_REQUEST
    assert_unharmed(cluster)


def test_the_id_of_another_topic_is_refused(cluster: Cluster) -> None:
    topic_id = cluster.ids["t"]
    assert assign(cluster, "new", topic_id) == ErrorCode.INCONSISTENT_TOPIC_ID
    assert update(cluster, "new", topic_id) == ErrorCode.INCONSISTENT_TOPIC_ID
    assert_unharmed(cluster)


def test_a_request_that_is_partly_refused_is_carried_out_otherwise(cluster: Cluster) -> None:
    states = [
        LeaderAndIsrTopicState(
            topic_name=name,
            topic_id=topic_id,
            partition_states=[
                LeaderAndIsrPartitionState(
                    partition_index=0,
                    controller_epoch=1,
                    leader=1,
                    leader_epoch=5,
                    isr=[1],
                    partition_epoch=5,
                    replicas=[1],
                )
            ],
        )
        for name, topic_id in (("../x", NEW_ID), ("t", cluster.ids["t"]), ("u", OTHER_ID), ("v", OTHER_ID))
    ]
    request = LeaderAndIsrRequest(
        controller_id=1, controller_epoch=1, broker_epoch=-1, type=1, topic_states=states, live_leaders=[]
    )
    topics = cluster.ask(1, request).topics
    codes = {(topic.topic_id, error.error_code) for topic in topics for error in topic.partition_errors}
    assert codes == {
        (NEW_ID, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (cluster.ids["t"], ErrorCode.NONE),
        (OTHER_ID, ErrorCode.NONE),
        (OTHER_ID, ErrorCode.INCONSISTENT_TOPIC_ID),
    }
    assert cluster.partition(1, "t").leader_epoch == 5
    stop = StopReplicaPartitionState(partition_index=0, leader_epoch=5, delete_partition=True)
    cluster.ask(
        1,
        StopReplicaRequest(
            controller_id=1,
            controller_epoch=1,
            broker_epoch=-1,
            topic_states=[StopReplicaTopicState(topic_name="u", partition_states=[stop])],
        ),
    )
    cluster.advance(70)
    assert_unharmed(cluster)


@pytest.mark.parametrize("index", [-1, -(2**31), HUGE, 200_000])
def test_a_partition_far_beyond_the_others_takes_no_memory(cluster: Cluster, index: int) -> None:
    assert update(cluster, "new", index=index) == ErrorCode.INVALID_REQUEST
    assert_unharmed(cluster)


@pytest.mark.parametrize(
    "fields", [{"node_id": -7}, {"port": -4}, {"port": 65_536}, {"protocol": 99}, {"protocol": -1}]
)
def test_a_broker_that_cannot_be_is_refused(cluster: Cluster, fields: dict[str, int]) -> None:
    before = cluster.brokers[1].metadata.image.brokers
    assert update(cluster, "new", broker=build_broker(**fields)) == ErrorCode.INVALID_REQUEST
    assert cluster.brokers[1].metadata.image.brokers == before
    assert_unharmed(cluster)


@pytest.mark.parametrize(("name", "index"), [("none", 0), ("../x", 0), ("t", -1), ("t", HUGE)])
def test_an_unknown_replica_is_stopped_without_effect(cluster: Cluster, name: str, index: int) -> None:
    stop = StopReplicaPartitionState(partition_index=index, leader_epoch=-1, delete_partition=True)
    topic = StopReplicaTopicState(topic_name=name, partition_states=[stop])
    request = StopReplicaRequest(controller_id=1, controller_epoch=1, broker_epoch=-1, topic_states=[topic])
    assert cluster.ask(1, request).error_code == 0
    assert_unharmed(cluster)
