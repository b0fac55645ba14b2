"""UpdateFeatures (key 57): raise or lower the finalized levels of the cluster's features."""

from __future__ import annotations

from kafkacompat.wire.entities import TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    """The requested level of one feature."""

    feature: str = string()  # the name of the feature
    max_version_level: int = int16()  # the requested level; below 1: remove the feature
    allow_downgrade: bool = boolean(versions="0")  # allows a lower level than the current one
    # 1: upgrade only, 2: also a downgrade without loss, 3: also a downgrade that loses metadata
    upgrade_type: int = int8(versions="1+", default=1)


class UpdateFeaturesRequest(Request, api_key=57, versions="0-2", flexible="0+"):
    """Set the given levels."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(versions="1+")


class UpdatableFeatureResult(Struct):
    """The outcome for one feature."""

    feature: str = string()  # the name of the feature
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class UpdateFeaturesResponse(Response, api_key=57, versions="0-2", flexible="0+"):
    """The outcome. From version 2 all features change together or none does."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, versions="0-1")
