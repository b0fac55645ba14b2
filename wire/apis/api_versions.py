"""ApiVersions (key 18): which requests, in which versions, the broker serves."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Request, api_key=18, versions="0-4", flexible="3+"):
    """What do you serve? From version 3 the client says what it is (KIP-511)."""

    client_software_name: str = string(versions="3+")
    client_software_version: str = string(versions="3+")


class ApiVersion(Struct):
    """The versions served of one request."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    """The levels of one feature that the broker could work at."""

    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


class FinalizedFeatureKey(Struct):
    """The level of one feature that the cluster works at."""

    name: str = string()
    max_version_level: int = int16()  # what all brokers work at
    min_version_level: int = int16()  # the same number


class ApiVersionsResponse(Response, api_key=18, versions="0-4", flexible="3+"):
    """The version ranges served, and the features of the cluster."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, versions="3+", tag=0)
    finalized_features_epoch: int = int64(versions="3+", default=-1, tag=1)  # -1 when not known
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, versions="3+", tag=2)
    zk_migration_ready: bool = boolean(versions="3+", tag=3)  # of a KRaft controller in a migration (KIP-866)
