"""DescribeConfigs (key 32): the configuration of topics and brokers."""

from __future__ import annotations

from kafkacompat.wire.entities import CONFIG_RESOURCE, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    """A resource and the requested entries of it."""

    resource_type: int = int8()  # 2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group
    resource_name: str = string(
        entity=CONFIG_RESOURCE
    )  # topic, broker id (empty: the cluster-wide default), subscription or group
    configuration_keys: list[str] | None = array(string(), nullable="0+")  # null: all entries


class DescribeConfigsRequest(Request, api_key=32, versions="0-4", flexible="4+"):
    """Describe the configuration of the given resources."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(versions="1+")  # adds all sources that define the entry (KIP-226)
    include_documentation: bool = boolean(versions="3+")  # adds the documentation of each entry (KIP-569)


class DescribeConfigsSynonym(Struct):
    """A source that defines the entry. Sources come in order of precedence, the highest first."""

    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()  # a code, as in config_source


class DescribeConfigsResourceResult(Struct):
    """One configuration entry."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null if the entry is sensitive
    read_only: bool = boolean()  # requests cannot change the entry
    # true if the value is the default; config_source replaces it from version 1
    is_default: bool = boolean(versions="0")
    # 1: topic, 2: dynamic broker, 3: dynamic default broker, 4: static broker, 5: default, 6: broker logger,
    # 7: client metrics, 8: group; -1 if unknown
    config_source: int = int8(versions="1+", default=-1)
    is_sensitive: bool = boolean()  # the value is a secret and is not returned
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, versions="1+")
    # 1: boolean, 2: string, 3: int, 4: short, 5: long, 6: double, 7: list, 8: class, 9: password; 0 if unknown
    config_type: int = int8(versions="3+")
    documentation: str | None = string(versions="3+", nullable="0+")  # null unless requested


class DescribeConfigsResult(Struct):
    """The configuration of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    resource_type: int = int8()  # the value from the request
    resource_name: str = string(entity=CONFIG_RESOURCE)  # the value from the request
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Response, api_key=32, versions="0-4", flexible="4+"):
    """The configuration of each resource."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
