"""A broker without an id receives one from ZooKeeper, and keeps it (broker.id.generation.enable)."""

from __future__ import annotations

import pytest

from kafkacompat.cluster.errors import ClusterError
from kafkacompat.config import ConfigError
from tests.kafkacompat.three_brokers.support import Cluster


def node_ids(cluster: Cluster) -> list[int]:
    return sorted(broker.config.node_id for broker in cluster.brokers.values())


def test_brokers_without_ids_receive_different_ones() -> None:
    cluster = Cluster((), broker_id="-1")
    for node in (1, 2, 3):
        cluster.start(node)
    assert node_ids(cluster) == [1001, 1002, 1003]


def test_a_generated_id_survives_a_restart_and_a_chosen_one_may_stand_beside_it() -> None:
    cluster = Cluster((1,), broker_id="-1", reserved_broker_max_id="50")
    cluster.start(2, broker_id="7")
    cluster.create("t", replicas=2)
    cluster.stop(1)
    cluster.start(1)
    assert node_ids(cluster) == [7, 51]
    cluster.wait(
        lambda: sorted(cluster.brokers[2].metadata.image.topics["t"].partitions[0].in_sync_replicas) == [7, 51]
    )


def test_an_id_among_the_generated_ones_is_rejected() -> None:
    cluster = Cluster((1,))
    broker = cluster.build(2, broker_id="1001")
    with pytest.raises(ClusterError, match=r"^broker.id=1001 is among the generated ids: choose one up to reserved"):
        cluster.run(broker.start())
    cluster.start(3, broker_id="1001", broker_id_generation_enable="false")
    assert node_ids(cluster) == [1, 1001]


def test_without_generation_an_id_is_compulsory() -> None:
    with pytest.raises(ConfigError, match=r"^broker.id=-1 is not valid: it takes a whole number of 0 or more$"):
        Cluster((1,), broker_id="-1", broker_id_generation_enable="false")
