"""Configurations as the clients of an instance see and change them."""

from __future__ import annotations

import pytest

from kafkacompat.handlers.tenants.configs import SHOWN_PROPERTIES
from kafkacompat.handlers.tenants.whitelist_room import MOST_CHARACTERS
from kafkacompat.wire.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkacompat.wire.apis.alter_configs import AlterConfigsResource as Replacement
from kafkacompat.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.tenants.tenant_node import BANK, OPERATOR, SHOP, TenantNode
from tests.handlers.test_configs import list_synonyms

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP, INSTANCE = 2, 4, 8, 16, 32, 100
Outcomes = dict[tuple[int, str], int]


@pytest.fixture
def node() -> TenantNode:
    node = TenantNode(ssl_keystore_password="very secret", log_retention_hours="100")
    for name in ("shop.orders", "bank.orders", "orders"):
        node.make_topic(name)
    return node


def describe(node: TenantNode, instance: str | None, kind: int, name: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = node.ask_as(instance, request, DescribeConfigsResponse, 4).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def alter(node: TenantNode, instance: str | None, *changes: tuple[int, str, str, str]) -> Outcomes:
    resources = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=0, value=value)],
        )
        for kind, name, key, value in changes
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    response = node.ask_as(instance, request, IncrementalAlterConfigsResponse, 1)
    return {(result.resource_type, result.resource_name): result.error_code for result in response.responses}


def read_value(node: TenantNode, instance: str | None, kind: int, name: str, key: str) -> tuple[str | None, int]:
    (entry,) = (entry for entry in describe(node, instance, kind, name).configs if entry.name == key)
    return entry.value, entry.config_source


def test_each_instance_configures_its_own_topic(node: TenantNode) -> None:
    assert alter(node, SHOP, (TOPIC, "orders", "retention.ms", "5")) == {(TOPIC, "orders"): 0}
    assert alter(node, BANK, (TOPIC, "orders", "retention.ms", "6")) == {(TOPIC, "orders"): 0}
    assert read_value(node, SHOP, TOPIC, "orders", "retention.ms") == ("5", 1)
    assert read_value(node, BANK, TOPIC, "orders", "retention.ms") == ("6", 1)
    assert read_value(node, OPERATOR, TOPIC, "orders", "retention.ms") == ("360000000", 5)
    assert read_value(node, OPERATOR, TOPIC, "bank.orders", "retention.ms") == ("6", 1)


@pytest.mark.parametrize("name", ["bank.orders", "shop.orders", "missing"])
def test_no_name_reaches_another_topic(node: TenantNode, name: str) -> None:
    assert describe(node, SHOP, TOPIC, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(node, SHOP, (TOPIC, name, "retention.ms", "5")) == {
        (TOPIC, name): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_groups_are_those_of_the_instance(node: TenantNode) -> None:
    key = "consumer.session.timeout.ms"
    assert alter(node, SHOP, (GROUP, "g", key, "50000")) == {(GROUP, "g"): 0}
    assert read_value(node, SHOP, GROUP, "g", key) == ("50000", 8)
    assert read_value(node, BANK, GROUP, "g", key)[1] == 5
    assert read_value(node, OPERATOR, GROUP, "shop.g", key) == ("50000", 8)


def test_brokers_are_not_changed_by_tenants(node: TenantNode) -> None:
    before = node.holder.image
    outcomes = alter(
        node,
        SHOP,
        (BROKER, "", "log.retention.ms", "1"),
        (BROKER, "1", "log.retention.ms", "1"),
        (LOGGER, "1", "root", "DEBUG"),
        (CLIENT_METRICS, "m", "interval.ms", "1000"),
        (INSTANCE, "shop", "limit.topics", "1000000"),
        (TOPIC, "orders", "kafkacompat.instance.topic", "x"),
    )
    assert outcomes == {
        (BROKER, ""): ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        (BROKER, "1"): ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        (LOGGER, "1"): ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        (CLIENT_METRICS, "m"): ErrorCode.INVALID_REQUEST,
        (INSTANCE, "shop"): ErrorCode.INVALID_REQUEST,
        (TOPIC, "orders"): ErrorCode.INVALID_CONFIG,
    }
    assert node.holder.image is before


def test_a_refused_resource_leaves_the_others_alone(node: TenantNode) -> None:
    outcomes = alter(node, SHOP, (BROKER, "", "log.retention.ms", "1"), (TOPIC, "orders", "retention.ms", "5"))
    assert outcomes == {(TOPIC, "orders"): 0, (BROKER, ""): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert read_value(node, SHOP, TOPIC, "orders", "retention.ms") == ("5", 1)


def test_alter_configs_replaces_the_configs_of_topics_only(node: TenantNode) -> None:
    assert alter(node, SHOP, (TOPIC, "orders", "retention.ms", "5")) == {(TOPIC, "orders"): 0}
    resources = [
        Replacement(resource_type=TOPIC, resource_name="orders"),
        Replacement(resource_type=INSTANCE, resource_name="shop"),
    ]
    response = node.ask_as(SHOP, AlterConfigsRequest(resources=resources), AlterConfigsResponse, 2)
    assert [result.error_code for result in response.responses] == [0, ErrorCode.INVALID_REQUEST]
    assert read_value(node, SHOP, TOPIC, "orders", "retention.ms")[1] == 5
    assert "shop" in node.instances.by_name


def test_a_broker_shows_only_harmless_properties(node: TenantNode) -> None:
    for name, value in (("log.cleaner.threads", "2"), ("log.retention.ms", "9")):
        assert alter(node, OPERATOR, (BROKER, "", name, value)) == {(BROKER, ""): 0}
    result = describe(node, SHOP, BROKER, "1")
    assert result.error_code == 0
    assert {entry.name for entry in result.configs} == SHOWN_PROPERTIES
    assert all(entry.read_only for entry in result.configs)
    assert "secret" not in repr(result)
    assert [entry.name for entry in describe(node, SHOP, BROKER, "").configs] == ["log.retention.ms"]
    assert describe(node, SHOP, BROKER, "2").error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_shows_the_values_of_the_instance(node: TenantNode) -> None:
    properties = {
        "num.partitions": "7",
        "auto.create.topics.enable": "false",
        "default.topic.configs": "retention.ms=5",
    }
    node.configure(SHOP, **properties)
    shown = {entry.name: entry for entry in describe(node, SHOP, BROKER, "1").configs}
    own = {"num.partitions": "7", "auto.create.topics.enable": "false", "log.retention.ms": "5"}
    assert {name: shown[name].value for name in own} == own
    assert list_synonyms(shown["num.partitions"]) == [("num.partitions", "7", 3), ("num.partitions", "1", 5)]
    assert {entry.name: entry.value for entry in describe(node, SHOP, BROKER, "").configs} == own
    assert read_value(node, BANK, BROKER, "1", "num.partitions") == ("1", 5)
    assert read_value(node, SHOP, TOPIC, "orders", "retention.ms") == ("5", 3)
    assert read_value(node, BANK, TOPIC, "orders", "retention.ms") == ("360000000", 5)


def test_a_broker_shows_defaults_within_the_bounds_of_the_instance(node: TenantNode) -> None:
    node.configure(SHOP, **{"limit.message.bytes": "1000", "limit.retention.max.ms": "7000"})
    assert read_value(node, SHOP, BROKER, "1", "message.max.bytes") == ("1000", 3)
    assert read_value(node, SHOP, BROKER, "1", "log.retention.ms") == ("7000", 3)
    assert read_value(node, BANK, BROKER, "1", "message.max.bytes") == ("1048588", 5)


@pytest.mark.parametrize("kind", [0, 3, LOGGER, CLIENT_METRICS, INSTANCE])
def test_other_resources_are_not_known(node: TenantNode, kind: int) -> None:
    result = describe(node, SHOP, kind, "shop")
    assert (result.error_code, result.error_message, result.configs) == (
        ErrorCode.INVALID_REQUEST,
        f"resources of type {kind} are not known",
        [],
    )


def test_only_the_resources_of_the_instance_are_listed(node: TenantNode) -> None:
    for instance, group in ((SHOP, "g"), (BANK, "h"), (OPERATOR, "shopping")):
        alter(node, instance, (GROUP, group, "consumer.session.timeout.ms", "50000"))
    alter(node, OPERATOR, (CLIENT_METRICS, "shop.m", "interval.ms", "1000"))

    def list_resources(*kinds: int) -> tuple[int, list[tuple[int, str]]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        response = node.ask_as(SHOP, request, ListConfigResourcesResponse, 1)
        listed = [(resource.resource_type, resource.resource_name) for resource in response.config_resources]
        return response.error_code, listed

    assert list_resources() == (0, [(TOPIC, "orders"), (BROKER, "1"), (GROUP, "g")])
    assert list_resources(LOGGER, CLIENT_METRICS) == (0, [])
    assert list_resources(INSTANCE) == (ErrorCode.UNSUPPORTED_VERSION, [])
    request = ListConfigResourcesRequest()
    assert node.ask_as(SHOP, request, ListConfigResourcesResponse, 0).config_resources == []


def test_segments_are_not_tiny(node: TenantNode) -> None:
    """With one file for each record a tenant would use up the files of all."""
    option = "internal.segment.bytes"
    assert alter(node, SHOP, (TOPIC, "orders", option, "1")) == {(TOPIC, "orders"): ErrorCode.INVALID_CONFIG}
    configs = [CreatableTopicConfig(name=option, value="1")]
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=configs)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1000, validate_only=True)
    (result,) = node.ask_as(SHOP, request, CreateTopicsResponse, 7).topics
    assert result.error_code == ErrorCode.INVALID_CONFIG


WHITELISTS = ("kafkacompat.whitelist.produce", "kafkacompat.whitelist.consume")
LONG = ",".join(f"10.1.{number >> 8}.{number & 255}" for number in range(2500))
"""Networks of some 26,000 characters; a text of the protocol holds 32,767."""
ROOM = MOST_CHARACTERS // len(LONG)


def test_the_whitelists_of_one_request_are_bounded(node: TenantNode) -> None:
    """The broker reads them in one turn, and a request can hold a hundred megabytes."""
    names = [f"topic{number}" for number in range(ROOM + 1)]
    for name in names:
        node.client(SHOP).make_topic(name)
    outcomes = alter(node, SHOP, *((TOPIC, name, WHITELISTS[0], LONG) for name in names))
    assert list(outcomes.values()) == [0] * ROOM + [ErrorCode.POLICY_VIOLATION]
    assert alter(node, SHOP, (TOPIC, names[-1], WHITELISTS[0], LONG)) == {(TOPIC, names[-1]): 0}
    appended = [
        AlterConfigsResource(
            resource_type=TOPIC,
            resource_name=name,
            configs=[AlterableConfig(name=WHITELISTS[0], config_operation=2, value="10.9.0.0/16")],
        )
        for name in names
    ]
    response = node.ask_as(SHOP, IncrementalAlterConfigsRequest(resources=appended), IncrementalAlterConfigsResponse, 1)
    codes = {result.resource_name: result.error_code for result in response.responses}
    assert codes == dict.fromkeys(names, 0) | {names[-1]: ErrorCode.POLICY_VIOLATION}


def test_the_whitelists_of_new_topics_are_bounded(node: TenantNode) -> None:
    configs = [CreatableTopicConfig(name=WHITELISTS[0], value=LONG)]
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=f"new{number}", num_partitions=1, replication_factor=1, assignments=[], configs=configs)
            for number in range(ROOM + 1)
        ],
        timeout_ms=1000,
        validate_only=True,
    )
    topics = node.ask_as(SHOP, request, CreateTopicsResponse, 7).topics
    assert {topic.error_code for topic in topics} == {ErrorCode.POLICY_VIOLATION}
    assert [topic.name for topic in topics] == [topic.name for topic in request.topics]
    request.topics.pop()
    assert {topic.error_code for topic in node.ask_as(SHOP, request, CreateTopicsResponse, 7).topics} == {0}


def test_whitelists_that_stay_are_not_read_again(node: TenantNode, monkeypatch: pytest.MonkeyPatch) -> None:
    assert alter(node, SHOP, (TOPIC, "orders", WHITELISTS[0], LONG)) == {(TOPIC, "orders"): 0}
    read: list[str] = []
    monkeypatch.setattr("kafkacompat.config.topics.parse_networks", lambda option, _: read.append(option))
    assert alter(node, SHOP, (TOPIC, "orders", "retention.ms", "5")) == {(TOPIC, "orders"): 0}
    assert not read
    assert alter(node, SHOP, (TOPIC, "orders", WHITELISTS[1], "10.0.0.0/8")) == {(TOPIC, "orders"): 0}
    assert read == [WHITELISTS[1]]
