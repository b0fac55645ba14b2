"""UpdateFeatures (key 57): raise or lower the levels of features that a cluster has agreed on."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    """The level one feature shall have."""

    feature: str = string()  # its name
    max_version_level: int = int16()  # the level wanted; below 1: drop the feature
    allow_downgrade: bool = boolean(versions="0")  # also if the level is lower than now
    # 1: only up, 2: down too if nothing is lost, 3: down even if something is
    upgrade_type: int = int8(versions="1+", default=1)


class UpdateFeaturesRequest(Request, api_key=57, versions="0-2", flexible="0+"):
    """Set these levels."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(versions="1+")


class UpdatableFeatureResult(Struct):
    """The outcome for one feature."""

    feature: str = string()  # its name
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UpdateFeaturesResponse(Response, api_key=57, versions="0-2", flexible="0+"):
    """What became of it; from version 2 all features change together or none."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, versions="0-1")
