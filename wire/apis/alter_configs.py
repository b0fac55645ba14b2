"""AlterConfigs (key 33): replace configurations as a whole. IncrementalAlterConfigs took its place (KIP-339)."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """One entry to set."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null: not allowed, leave the entry out


class AlterConfigsResource(Struct):
    """Everything that is to be set of one topic or broker; other entries return to their defaults."""

    resource_type: int = int8()  # as in DescribeConfigs
    resource_name: str = string()  # as in DescribeConfigs
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Request, api_key=33, versions="0-2", flexible="2+"):
    """Replace these configurations."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    """The outcome for one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()  # as in the request
    resource_name: str = string()  # as in the request


class AlterConfigsResponse(Response, api_key=33, versions="0-2", flexible="2+"):
    """Which resources were changed."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
