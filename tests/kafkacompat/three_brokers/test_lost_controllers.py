"""A controller that dies right after a write: its brokers learn of the change from what ZooKeeper holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.client_entities import CLIENT_ID, USER
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.schema import Request
from tests.kafkacompat.three_brokers.support import CHROOT, Cluster
from tests.kafkacompat.three_brokers.test_controllers import wait_for_controller

SCRAM_SHA_256 = 1


def kill_after_write(cluster: Cluster, path: str) -> None:
    """Kill the controller in the moment in which ZooKeeper has made its change of a path."""
    controller, server = cluster.controller(), cluster.zookeeper
    change = server.change

    def change_and_kill(operations, session_id):  # type: ignore[no-untyped-def]
        results = change(operations, session_id)
        if any(operation.path == f"{CHROOT}{path}" for operation in operations):
            server.change = change  # type: ignore[method-assign]
            cluster.kill(controller)
        return results

    server.change = change_and_kill  # type: ignore[method-assign]


def alter_config(kind: ResourceType, name: str, config: str, value: str) -> IncrementalAlterConfigsRequest:
    configs = [AlterableConfig(name=config, config_operation=0, value=value)]
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)]
    )


def alter_quota() -> AlterClientQuotasRequest:
    entity = [EntityData(entity_type=CLIENT_ID, entity_name="c"), EntityData(entity_type=USER, entity_name="u")]
    return AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[OpData(key="request_percentage", value=5)])])


def alter_scram() -> AlterUserScramCredentialsRequest:
    upsertion = ScramCredentialUpsertion(
        name="u", mechanism=SCRAM_SHA_256, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32
    )
    return AlterUserScramCredentialsRequest(upsertions=[upsertion])


def topic_retention(cluster: Cluster, node: int) -> object:
    return cluster.partition(node, "t").log.config.retention_ms


def cleaner_backoff(cluster: Cluster, node: int) -> object:
    return cluster.brokers[node].effective.config.int("log.cleaner.threads")


def clients(cluster: Cluster, node: int) -> object:
    configs = cluster.side(node).member.configs.image.clients.values()
    return [len(config.quotas) + len(config.credentials) for config in configs]


def new_topic_configs(cluster: Cluster, node: int) -> object:
    return cluster.side(node).member.configs.image.config(ResourceType.TOPIC, "new").get("retention.ms")


def old_topic_configs(cluster: Cluster, node: int) -> object:
    return cluster.side(node).member.configs.image.config(ResourceType.TOPIC, "t").get("retention.ms")


WRITES: dict[str, tuple[str, Request, Callable[[Cluster, int], object], object]] = {
    "a topic's config": (
        "/config/topics/t",
        alter_config(ResourceType.TOPIC, "t", "retention.ms", "12345"),
        topic_retention,
        12345,
    ),
    "all brokers' config": (
        "/config/brokers/<default>",
        alter_config(ResourceType.BROKER, "", "log.cleaner.threads", "2"),
        cleaner_backoff,
        2,
    ),
    "a quota": ("/config/users/u/clients/c", alter_quota(), clients, [1]),
    "a credential": ("/config/users/u", alter_scram(), clients, [1]),
    "a new topic's config": (
        "/config/topics/new",
        Cluster.build_create("new", assignment={0: [1]}, retention_ms="777"),
        new_topic_configs,
        "777",
    ),
    "a deleted topic's config": (
        "/config/topics/t",
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], topic_names=["t"], timeout_ms=20_000),
        old_topic_configs,
        None,
    ),
}


@pytest.mark.parametrize("case", WRITES)
def test_a_controller_dies_after_a_write_of_configs(case: str) -> None:
    path, request, read, wanted = WRITES[case]
    cluster = Cluster()
    cluster.create("t", retention_ms="5000000")
    cluster.wait_for_leader("t")
    cluster.advance(1)
    first = cluster.controller()
    kill_after_write(cluster, path)
    cluster.send(first, request).addErrback(lambda failure: None)
    cluster.wait(lambda: first not in cluster.brokers)
    wait_for_controller(cluster)
    cluster.advance(5)
    assert {node: read(cluster, node) for node in cluster.brokers} == dict.fromkeys(cluster.brokers, wanted)
    if case == "a new topic's config":
        cluster.start(first)
        cluster.wait_for_leader("new")
