"""ListConfigResources (key 74): the names of resources that have their own configuration (KIP-1142)."""

from __future__ import annotations

from kafkacompat.wire.entities import CONFIG_RESOURCE
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Request, api_key=74, versions="0-1", flexible="0+"):
    """List the resources of the given types. Version 0 lists client metrics only."""

    resource_types: list[int] = array(int8(), versions="1+")  # codes, as in DescribeConfigs; empty: all types


class ConfigResource(Struct):
    """One resource."""

    resource_name: str = string(entity=CONFIG_RESOURCE)
    resource_type: int = int8(versions="1+", default=16)  # a code, as in DescribeConfigs


class ListConfigResourcesResponse(Response, api_key=74, versions="0-1", flexible="0+"):
    """The resources of the requested types."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
