"""UpdateFeatures: there are none, so none is changed."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode


def ask(version: int, *updates: FeatureUpdateKey) -> UpdateFeaturesResponse:
    return AdminNode().ask(UpdateFeaturesRequest(feature_updates=list(updates)), UpdateFeaturesResponse, version)


@pytest.mark.parametrize("version", range(3))
def test_every_feature_is_refused(version: int) -> None:
    response = ask(version, FeatureUpdateKey(feature="transaction.version", max_version_level=2))
    assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert response.error_message and "transaction.version cannot be set to 2" in response.error_message


@pytest.mark.parametrize("version", range(3))
def test_nothing_is_allowed(version: int) -> None:
    response = ask(version)
    assert (response.error_code, response.error_message, response.results) == (0, None, [])
