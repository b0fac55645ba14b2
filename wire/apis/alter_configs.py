"""AlterConfigs (key 33): replace whole configurations. IncrementalAlterConfigs supersedes it (KIP-339)."""

from __future__ import annotations

from kafkacompat.wire.entities import CONFIG_RESOURCE, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """One entry to set."""

    name: str = string()
    value: str | None = string(nullable="0+")  # null is rejected; a client omits the entry instead


class AlterConfigsResource(Struct):
    """The full configuration of one topic or broker. Entries that it omits return to their defaults."""

    resource_type: int = int8()  # a code, as in DescribeConfigs
    resource_name: str = string(entity=CONFIG_RESOURCE)  # a name, as in DescribeConfigs
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Request, api_key=33, versions="0-2", flexible="2+"):
    """Replace the configurations of the given resources."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    """The outcome for one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)
    resource_type: int = int8()  # the value from the request
    resource_name: str = string(entity=CONFIG_RESOURCE)  # the value from the request


class AlterConfigsResponse(Response, api_key=33, versions="0-2", flexible="2+"):
    """The outcome for each resource."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
