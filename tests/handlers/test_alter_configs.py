"""AlterConfigs: one configuration in the place of another."""

from __future__ import annotations

import pytest

from kafkacompat.config.resources import ResourceType
from kafkacompat.wire.apis.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Configs = dict[str, "str | None"]


def make_resource(kind: int, name: str, configs: Configs) -> AlterConfigsResource:
    given = [AlterableConfig(name=key, value=value) for key, value in configs.items()]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=given)


def ask(node: AdminNode, *resources: AlterConfigsResource, check: bool = False, version: int = 2) -> list[int]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=check)
    responses = node.ask(request, AlterConfigsResponse, version).responses
    assert [(response.resource_type, response.resource_name) for response in responses] == [
        (resource.resource_type, resource.resource_name) for resource in resources
    ]
    assert all(bool(response.error_message) == bool(response.error_code) for response in responses)
    return [response.error_code for response in responses]


def read_config(node: AdminNode, kind: ResourceType, name: str) -> dict[str, str]:
    return dict(node.holder.image.config(kind, name))


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_removes_configs_that_it_does_not_name(version: int) -> None:
    node = AdminNode()
    node.make_topic("t")
    first: Configs = {"retention.ms": "5", "cleanup.policy": "compact"}
    assert ask(node, make_resource(TOPIC, "t", first), version=version) == [0]
    assert read_config(node, ResourceType.TOPIC, "t") == first
    assert ask(node, make_resource(TOPIC, "t", {"segment.ms": "6"}), version=version) == [0]
    assert read_config(node, ResourceType.TOPIC, "t") == {"segment.ms": "6"}
    assert ask(node, make_resource(TOPIC, "t", {}), version=version) == [0]
    assert read_config(node, ResourceType.TOPIC, "t") == {}


@pytest.mark.parametrize(
    ("kind", "name", "key", "value"),
    [
        (BROKER, "1", "log.retention.ms", "5"),
        (BROKER, "", "log.retention.ms", "5"),
        (GROUP, "g", "consumer.session.timeout.ms", "50000"),
        (CLIENT_METRICS, "m", "interval.ms", "1000"),
    ],
)
def test_alter_configs_replaces_configs_of_other_resources(kind: int, name: str, key: str, value: str) -> None:
    node = AdminNode()
    assert ask(node, make_resource(kind, name, {key: value}), check=True) == [0]
    assert node.holder.image.configs == {}
    assert ask(node, make_resource(kind, name, {key: value})) == [0]
    assert read_config(node, ResourceType(kind), name) == {key: value}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "nope", {"retention.ms": "5"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", {"segment.ms": "5", "retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (BROKER, "1", {"log.dirs": "/x"}, ErrorCode.INVALID_REQUEST),
        (BROKER, "2", {"log.retention.ms": "5"}, ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", {"root": "INFO"}, ErrorCode.INVALID_REQUEST),
        (3, "x", {"a": "b"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_alter_configs_refuses_bad_values(kind: int, name: str, configs: Configs, code: ErrorCode) -> None:
    node = AdminNode()
    node.make_topic("t")
    assert ask(node, make_resource(kind, name, configs)) == [code]
    assert node.holder.image.configs == {}


def test_a_resource_or_a_config_named_twice() -> None:
    node = AdminNode()
    node.make_topic("t")
    node.make_topic("u")
    first, second = make_resource(TOPIC, "t", {"retention.ms": "5"}), make_resource(TOPIC, "u", {"retention.ms": "5"})
    twice = ErrorCode.INVALID_REQUEST
    assert ask(node, first, second, first) == [twice, 0, twice]
    first.configs *= 2
    assert ask(node, first) == [twice]
    assert read_config(node, ResourceType.TOPIC, "t") == {}


@pytest.mark.parametrize(
    ("kind", "names", "reason"),
    [
        (TOPIC, ["a", "b", "c", "b", "a"], "these configs are named more than once: a, b"),
        (LOGGER, ["root"], "AlterConfigs cannot change logger levels; use IncrementalAlterConfigs"),
        (
            3,
            ["a"],
            "resources of type 3 cannot be changed here, only TOPIC (2), BROKER (4), GROUP (32), CLIENT_METRICS (16)",
        ),
    ],
)
def test_alter_configs_explains_its_refusals(kind: int, names: list[str], reason: str) -> None:
    configs = [AlterableConfig(name=name, value="1") for name in names]
    wanted = AlterConfigsResource(resource_type=kind, resource_name="t", configs=configs)
    answer = AdminNode().ask(AlterConfigsRequest(resources=[wanted]), AlterConfigsResponse, 2)
    assert [response.error_message for response in answer.responses] == [reason]


def test_a_failing_store() -> None:
    node = AdminNode()
    node.make_topic("t")
    node.store.failing = True
    assert ask(node, make_resource(TOPIC, "t", {"retention.ms": "5"})) == [ErrorCode.KAFKA_STORAGE_ERROR]
