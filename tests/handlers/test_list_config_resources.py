"""ListConfigResources: the resources that may have configs, and those that have some."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.handlers.test_configs import BROKER, CLIENT_METRICS, DELETE, GROUP, LOGGER, SET, TOPIC, alter

Listed = list[tuple[int, str]]


def ask(node: AdminNode, *kinds: int, version: int = 1) -> ListConfigResourcesResponse:
    return node.ask(ListConfigResourcesRequest(resource_types=list(kinds)), ListConfigResourcesResponse, version)


def list_resources(node: AdminNode, *kinds: int, version: int = 1) -> Listed:
    response = ask(node, *kinds, version=version)
    assert response.error_code == 0
    return [(resource.resource_type, resource.resource_name) for resource in response.config_resources]


@pytest.fixture
def node() -> AdminNode:
    node = AdminNode()
    node.make_topic("t")
    node.make_topic("s")
    assert alter(node, GROUP, "g", (SET, "consumer.session.timeout.ms", "50000")) == 0
    assert alter(node, CLIENT_METRICS, "m", (SET, "interval.ms", "1000")) == 0
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5")) == 0
    return node


def test_all_there_are(node: AdminNode) -> None:
    topics: Listed = [(TOPIC, "s"), (TOPIC, "t")]
    assert list_resources(node) == [*topics, (BROKER, "1"), (LOGGER, "1"), (CLIENT_METRICS, "m"), (GROUP, "g")]
    assert list_resources(node, GROUP, TOPIC, GROUP) == [*topics, (GROUP, "g")]


def test_the_first_version_lists_client_metrics(node: AdminNode) -> None:
    assert list_resources(node, version=0) == [(CLIENT_METRICS, "m")]


def test_a_resource_without_configs_is_not_listed(node: AdminNode) -> None:
    assert alter(node, CLIENT_METRICS, "m", (DELETE, "interval.ms", None)) == 0
    assert list_resources(node, CLIENT_METRICS) == []


@pytest.mark.parametrize("kind", [0, 1, 3, 64, -1])
def test_unknown_types(node: AdminNode, kind: int) -> None:
    response = ask(node, GROUP, kind)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
