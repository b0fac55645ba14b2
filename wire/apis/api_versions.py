"""ApiVersions (key 18): the requests that the broker supports, with their versions."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Request, api_key=18, versions="0-4", flexible="3+"):
    """Request the supported versions. From version 3 the client reports its name and version (KIP-511)."""

    client_software_name: str = string(versions="3+")
    client_software_version: str = string(versions="3+")


class ApiVersion(Struct):
    """The supported versions of one request."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    """The levels of one feature that the broker supports."""

    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


class FinalizedFeatureKey(Struct):
    """The level of one feature that the cluster uses."""

    name: str = string()
    max_version_level: int = int16()  # the level that all brokers use
    min_version_level: int = int16()  # the same level as max_version_level


class ApiVersionsResponse(Response, api_key=18, versions="0-4", flexible="3+"):
    """The supported version ranges and the features of the cluster."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, versions="3+", tag=0)
    # the metadata offset of the features; -1 if unknown
    finalized_features_epoch: int = int64(versions="3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, versions="3+", tag=2)
    # a KRaft controller is ready for a migration from ZooKeeper (KIP-866)
    zk_migration_ready: bool = boolean(versions="3+", tag=3)
