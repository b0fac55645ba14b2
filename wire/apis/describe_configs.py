"""DescribeConfigs (key 32): the configuration of topics and brokers."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    """A topic or broker, and the entries wanted of it."""

    resource_type: int = int8()  # 2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group
    resource_name: str = string()  # topic, broker id (empty: what all brokers share), subscription or group
    configuration_keys: list[str] | None = array(string(), nullable="0+")  # null: all


class DescribeConfigsRequest(Request, api_key=32, versions="0-4", flexible="4+"):
    """Describe the configuration of these resources."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(versions="1+")  # tell where else the value could come from (KIP-226)
    include_documentation: bool = boolean(versions="3+")  # and what each entry is for (KIP-569)


class DescribeConfigsSynonym(Struct):
    """A place the value could come from, the strongest first."""

    name: str = string()
    value: str | None = string(nullable="0+")
    source: int = int8()  # as config_source


class DescribeConfigsResourceResult(Struct):
    """One configuration entry."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null when sensitive
    read_only: bool = boolean()  # no request can change it
    is_default: bool = boolean(versions="0")  # nobody set it; from version 1 config_source tells
    # 1: topic, 2: dynamic broker, 3: dynamic default broker, 4: static broker, 5: default, 6: broker logger,
    # 7: client metrics, 8: group; -1 when not known
    config_source: int = int8(versions="1+", default=-1)
    is_sensitive: bool = boolean()  # a secret, whose value is not told
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, versions="1+")
    # 1: boolean, 2: string, 3: int, 4: short, 5: long, 6: double, 7: list, 8: class, 9: password; 0 when not known
    config_type: int = int8(versions="3+")
    documentation: str | None = string(versions="3+", nullable="0+")  # null unless asked for


class DescribeConfigsResult(Struct):
    """The configuration of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()  # as in the request
    resource_name: str = string()  # as in the request
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Response, api_key=32, versions="0-4", flexible="4+"):
    """The configuration of each resource."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
