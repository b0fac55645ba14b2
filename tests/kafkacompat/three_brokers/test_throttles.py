"""Throttled replication (KIP-73): a replica that catches up leaves room to others, on either side."""

from __future__ import annotations

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.kafkacompat.three_brokers.support import NODES, Cluster

BATCHES, BATCH_BYTES = 20, 10_000
RATE = 10_000


def configure(cluster: Cluster, kind: ResourceType, name: str, config: str, value: str) -> None:
    change = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=config, config_operation=0, value=value)]
    )
    answer = cluster.ask(cluster.controller(), IncrementalAlterConfigsRequest(resources=[change]))
    assert answer.responses[0].error_code == 0, answer


def measure_catch_up(side: str | None) -> float:
    """Return the seconds in which a replica that was away gets what it missed."""
    cluster = Cluster(replica_fetch_max_bytes=str(2 * BATCH_BYTES))
    cluster.create("t")
    leader = cluster.wait_for_leader("t")
    cluster.wait_for_in_sync("t", NODES)
    away = next(node for node in NODES if node not in (leader, cluster.controller()))
    cluster.kill(away)
    cluster.wait_for_in_sync("t", [node for node in NODES if node != away])
    leader = cluster.wait_for_leader("t")
    for number in range(BATCHES):
        assert cluster.produce(leader, "t", b"%d" % number + bytes(BATCH_BYTES)).error_code == 0
    if side is not None:
        configure(cluster, ResourceType.BROKER, "", f"{side}.replication.throttled.rate", str(RATE))
        configure(cluster, ResourceType.TOPIC, "t", f"{side}.replication.throttled.replicas", "*")
    cluster.start(away)
    began_s = cluster.clock.seconds()
    cluster.wait_for_in_sync("t", NODES)
    return cluster.clock.seconds() - began_s


def test_without_a_throttle_a_replica_catches_up_at_once() -> None:
    assert measure_catch_up(None) < 5


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_replica_takes_its_time(side: str) -> None:
    assert measure_catch_up(side) > BATCHES * BATCH_BYTES / RATE / 2
