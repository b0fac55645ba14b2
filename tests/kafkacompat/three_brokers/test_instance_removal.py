"""Instances of three brokers: changed through any broker, and removed by whichever broker is the controller."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat import instance_removal
from kafkacompat.config.resources import ResourceType
from kafkacompat.monitoring.administration.answers import HttpError
from kafkacompat.monitoring.administration.requests import InternalRequests
from kafkacompat.security.principals import ANONYMOUS
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.tenancy import instance_changes
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.kafkacompat.three_brokers.support import NODES, START_S, Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller

GROUPS = [f"{name}.group-{number}" for name in ("shop", "bank") for number in range(4)]


def alter(cluster: Cluster, node: int, name: str, changes: instance_changes.Changes) -> str | None:
    """Change an instance by a request to a broker; return the error message."""
    configs = [
        AlterableConfig(name=change.name, config_operation=int(change.operation), value=change.value)
        for change in changes
    ]
    resource = AlterConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configs=configs)
    (result,) = cluster.ask(node, IncrementalAlterConfigsRequest(resources=[resource])).responses
    return str(result.error_message) if result.error_code else None


def commit(cluster: Cluster, group_id: str, topic: str) -> None:
    """Commit an offset at the group's coordinator."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    wanted = OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=cluster.ids[topic], partitions=[partition])],
    )
    find = FindCoordinatorRequest(key=group_id, coordinator_keys=[group_id])

    for _ in range(200):
        (coordinator,) = cluster.ask(cluster.any_node(), find).coordinators
        if not coordinator.error_code:
            answer = cluster.ask(coordinator.node_id, wanted)
            if not answer.topics[0].partitions[0].error_code:
                return
        cluster.advance(0.1)
    raise AssertionError(f"{group_id} cannot commit")


def list_groups(cluster: Cluster) -> list[str]:
    return sorted(group.group_id for node in cluster.brokers for group in cluster.ask(node, ListGroupsRequest()).groups)


def is_gone(cluster: Cluster) -> bool:
    images = [broker.metadata.image for broker in cluster.brokers.values()]
    return all((ResourceType.INSTANCE, "shop") not in image.configs for image in images)


def make_cluster() -> Cluster:
    """A cluster with two instances, which have topics and groups on several coordinators."""
    cluster = Cluster()
    other = next(node for node in NODES if node != cluster.controller())
    for name in ("shop", "bank"):
        assert alter(cluster, other, name, instance_changes.plan_creation({}, Random(name))) is None
        for number in range(3):
            cluster.create(f"{name}.{number}")
    for group_id in GROUPS:
        commit(cluster, group_id, f"{group_id.partition('.')[0]}.0")
    return cluster


def check_removed(cluster: Cluster) -> None:
    cluster.wait(lambda: is_gone(cluster), 200)
    assert list_groups(cluster) == [group_id for group_id in sorted(GROUPS) if group_id.startswith("bank.")]
    for broker in cluster.brokers.values():
        topics = [name for name in broker.metadata.image.topics if not name.startswith("__")]
        assert sorted(topics) == ["bank.0", "bank.1", "bank.2"]
        assert list(broker.instances.by_name) == ["bank"]


def test_any_broker_passes_changes_on_and_all_brokers_learn_of_them() -> None:
    cluster = Cluster()
    for node in NODES:
        assert alter(cluster, node, f"i{node}", instance_changes.plan_creation({}, Random(node))) is None
    message = alter(cluster, 1, "i2", instance_changes.plan_creation({}, Random(9)))
    assert message == "the instance i2 exists already: change it by `kafkacompat instances alter`"
    cluster.wait(lambda: all(len(broker.instances.by_name) == 3 for broker in cluster.brokers.values()))


def test_http_of_any_broker_reaches_the_controller() -> None:
    cluster = Cluster()
    broker = cluster.brokers[next(node for node in NODES if node != cluster.controller())]
    dispatcher = Dispatcher(broker._handlers(), broker._services)
    requests = InternalRequests(dispatcher, ANONYMOUS, "127.0.0.1")
    creation = instance_changes.plan_creation({"limit.topics": "3"}, Random(1))
    cluster.run(requests.alter("shop", creation))
    cluster.wait(lambda: "shop" in broker.instances.by_name)
    assert cluster.run(requests.list_names()) == ["shop"]
    described = cluster.run(requests.describe(["shop", "bank"]))
    assert described == {"shop": {"cluster.id": creation[0].value, "limit.topics": "3"}}
    with pytest.raises(HttpError) as refused:
        cluster.run(requests.alter("shop", creation[:1] + instance_changes.plan_creation({}, Random(2))[1:]))
    assert (refused.value.status, str(refused.value)) == (
        400,
        "secret of the instance shop cannot change: its clients' names depend on it",
    )


def test_groups_on_all_coordinators_go() -> None:
    cluster = make_cluster()
    assert alter(cluster, 1, "shop", instance_changes.plan_deletion(START_S * 1000, 0)) is None
    check_removed(cluster)


@pytest.mark.parametrize("turns", [1, 4, 12, 40])
def test_the_next_controller_goes_on_when_one_dies(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance_removal, "TOPICS_A_PORTION", 1)
    cluster = make_cluster()
    old = cluster.controller()
    other = next(node for node in NODES if node != old)
    assert alter(cluster, other, "shop", instance_changes.plan_deletion(START_S * 1000, 0)) is None
    for _ in range(turns):
        cluster.turn()
    cluster.kill(old)
    wait_for_controller(cluster, but=old)
    cluster.start(old)
    check_removed(cluster)
