"""UpdateFeatures: no level can be changed."""

from __future__ import annotations

import pytest

from kafkacompat.metadata.features import TRANSACTION_VERSION
from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode


def ask(version: int, *updates: tuple[str, int]) -> UpdateFeaturesResponse:
    node = AdminNode()
    wanted = [FeatureUpdateKey(feature=feature, max_version_level=level) for feature, level in updates]
    return node.ask(UpdateFeaturesRequest(feature_updates=wanted), UpdateFeaturesResponse, version)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("update", "words"),
    [
        (("frobnicate", 1), "no feature of that name, so frobnicate cannot be set to 1"),
        ((TRANSACTION_VERSION, 1), "works at level 2 alone, so transaction.version cannot be set to 1"),
        ((TRANSACTION_VERSION, 3), "works at level 2 alone, so transaction.version cannot be set to 3"),
    ],
)
def test_an_impossible_level_is_refused(version: int, update: tuple[str, int], words: str) -> None:
    for updates in ([update], [(TRANSACTION_VERSION, 2), update]):
        response = ask(version, *updates)
        assert (response.error_code, response.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        assert response.error_message and words in response.error_message


@pytest.mark.parametrize("version", range(3))
def test_nothing_is_allowed(version: int) -> None:
    for updates in ([], [(TRANSACTION_VERSION, 2)]):
        response = ask(version, *updates)
        assert (response.error_code, response.error_message, response.results) == (0, None, [])
