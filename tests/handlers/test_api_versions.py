"""ApiVersions: the table of handlers, and how a client finds a version that both know."""

from __future__ import annotations

import pytest

from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.api_versions import handle_api_versions
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.handlers.data_node import DataNode
from tests.handlers.node import context_of, reread_response


def make_request(name: str = "librdkafka", version: str = "2.5.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_api_versions_lists_served_apis_by_key(version: int) -> None:
    response = DataNode().ask(make_request(), ApiVersionsResponse, version)
    listed = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
    assert response.error_code == 0
    assert listed == sorted((key, handler.versions.first, handler.versions.last) for key, handler in HANDLERS.items())
    assert (0, 0, 13) in listed
    assert (18, 0, 4) in listed


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a.", "1"), ("a b", "1"), ("a", "1\n"), ("ä", "1")]
)
def test_a_client_names_its_software_from_version_3(name: str, version: str) -> None:
    refused = DataNode().ask(make_request(name, version), ApiVersionsResponse, 3)
    assert (refused.error_code, refused.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert DataNode().ask(make_request(name, version), ApiVersionsResponse, 2).error_code == 0


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "x.y-z.1", "7"])
def test_usual_names_are_taken(name: str) -> None:
    assert DataNode().ask(make_request(name, "4.3.1-SNAPSHOT"), ApiVersionsResponse, 4).error_code == 0


def test_a_version_that_is_not_known_is_answered_with_our_own() -> None:
    answered = handle_api_versions(None, context_of(99), DataNode().services)
    assert answered is not None
    response = reread_response(answered, ApiVersionsResponse, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(("version", "supported"), [(0, []), (2, []), (3, []), (4, [("transaction.version", 0, 2)])])
def test_feature_levels_are_listed_from_version_3(version: int, supported: list[tuple[str, int, int]]) -> None:
    node = AdminNode()
    response = node.ask(make_request(), ApiVersionsResponse, version)
    assert [
        (feature.name, feature.min_version, feature.max_version) for feature in response.supported_features
    ] == supported
    finalized = [
        (feature.name, feature.min_version_level, feature.max_version_level) for feature in response.finalized_features
    ]
    assert finalized == ([("transaction.version", 2, 2)] if version >= 3 else [])
    assert response.finalized_features_epoch == (node.holder.image.version if version >= 3 else -1)
