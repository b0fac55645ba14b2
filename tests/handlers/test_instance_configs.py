"""Instances as resources with a configuration, as the operator of the cluster sees and changes them."""

from __future__ import annotations

import pytest

from kafkacompat.config.instances import INSTANCE_PROPERTIES
from kafkacompat.wire.apis.alter_configs import AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.handlers.test_configs import APPEND, DELETE, SET, TOPIC, alter, describe, list_synonyms
from tests.handlers.test_list_config_resources import list_resources

INSTANCE = 100


@pytest.fixture
def node() -> AdminNode:
    node = AdminNode()
    assert alter(node, INSTANCE, "shop", (SET, "cluster.id", "c-shop"), (SET, "secret", "s3cret")) == 0
    return node


def test_every_property_is_shown_but_no_secret(node: AdminNode) -> None:
    assert alter(node, INSTANCE, "shop", (SET, "limit.topics", "7")) == 0
    result = describe(node, INSTANCE, "shop")
    shown = {entry.name: entry for entry in result.configs}
    assert [*shown] == sorted(INSTANCE_PROPERTIES)
    assert (shown["limit.topics"].value, shown["limit.topics"].read_only) == ("7", False)
    assert list_synonyms(shown["limit.topics"]) == [("limit.topics", "7", INSTANCE), ("limit.topics", "-1", 5)]
    assert (shown["limit.groups"].value, shown["limit.groups"].config_source) == ("-1", 5)
    assert (shown["cluster.id"].value, shown["cluster.id"].read_only) == ("c-shop", True)
    assert (shown["secret"].value, shown["secret"].is_sensitive) == (None, True)
    assert "s3cret" not in repr(result)


def test_an_instance_is_listed_until_it_has_no_properties(node: AdminNode) -> None:
    assert list_resources(node, INSTANCE) == [(INSTANCE, "shop")]
    request = AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=INSTANCE, resource_name="shop")])
    assert node.ask(request, AlterConfigsResponse, 2).responses[0].error_code == 0
    assert list_resources(node, INSTANCE) == []
    assert describe(node, INSTANCE, "shop").error_code == ErrorCode.RESOURCE_NOT_FOUND


def test_a_list_is_changed_by_its_elements(node: AdminNode) -> None:
    assert alter(node, INSTANCE, "shop", (SET, "whitelist", "10.0.0.0/8")) == 0
    assert alter(node, INSTANCE, "shop", (APPEND, "whitelist", "192.168.0.0/16")) == 0
    (shown,) = describe(node, INSTANCE, "shop", ["whitelist"]).configs
    assert shown.value == "10.0.0.0/8,192.168.0.0/16"


def test_the_defaults_of_an_instance_show_as_those_of_the_brokers(node: AdminNode) -> None:
    defaults = "retention.ms=5,internal.segment.bytes=9,cleanup.policy=compact,delete"
    assert alter(node, INSTANCE, "shop", (SET, "default.topic.configs", defaults)) == 0
    node.make_topic("shop.orders")
    shown = {entry.name: entry for entry in describe(node, TOPIC, "shop.orders").configs}
    assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("5", 3)
    assert list_synonyms(shown["retention.ms"])[0] == ("log.retention.ms", "5", 3)
    assert (shown["cleanup.policy"].value, "internal.segment.bytes" in shown) == ("compact,delete", False)
    assert alter(node, TOPIC, "shop.orders", (SET, "retention.ms", "7")) == 0
    own = describe(node, TOPIC, "shop.orders", ["retention.ms"]).configs[0]
    assert (own.value, own.config_source) == ("7", 1)
    assert list_synonyms(own)[:2] == [("retention.ms", "7", 1), ("log.retention.ms", "5", 3)]
    node.make_topic("orders")
    assert describe(node, TOPIC, "orders", ["retention.ms"]).configs[0].config_source == 5


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("shop", (SET, "limit.topics", "many"), ErrorCode.INVALID_CONFIG),
        ("shop", (SET, "limit.topisc", "1"), ErrorCode.INVALID_CONFIG),
        ("shop", (DELETE, "secret", None), ErrorCode.INVALID_CONFIG),
        ("bad.name", (SET, "limit.topics", "1"), ErrorCode.INVALID_CONFIG),
        ("", (SET, "limit.topics", "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_valid_changes_nothing(
    node: AdminNode, name: str, change: tuple[int, str, str | None], code: ErrorCode
) -> None:
    before = describe(node, INSTANCE, "shop")
    assert alter(node, INSTANCE, name, change) == code
    assert describe(node, INSTANCE, "shop") == before
