"""IncrementalAlterConfigs (key 44): change single configuration entries."""

from __future__ import annotations

from kafkacompat.wire.entities import CONFIG_RESOURCE, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """The change to one entry."""

    name: str = string()
    config_operation: int = int8()  # 0: set, 1: delete, 2: append, 3: subtract (list entries only)
    value: str | None = string(nullable="0+")  # the value; null with operation 1 (delete)


class AlterConfigsResource(Struct):
    """The changes to one topic or broker."""

    resource_type: int = int8()  # a code, as in DescribeConfigs
    resource_name: str = string(entity=CONFIG_RESOURCE)  # a name, as in DescribeConfigs
    configs: list[AlterableConfig] = array(AlterableConfig)


class IncrementalAlterConfigsRequest(Request, api_key=44, versions="0-1", flexible="1+"):
    """Change the given entries and keep all others."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    """The outcome for one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    resource_type: int = int8()  # the value from the request
    resource_name: str = string(entity=CONFIG_RESOURCE)  # the value from the request


class IncrementalAlterConfigsResponse(Response, api_key=44, versions="0-1", flexible="1+"):
    """The outcome for each resource."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
