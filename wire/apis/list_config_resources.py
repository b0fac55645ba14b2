"""ListConfigResources (key 74): DOC"""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Request, api_key=74, versions="0-1", flexible="0+"):
    """DOC"""

    resource_types: list[int] = array(int8(), versions="1+")


class ConfigResource(Struct):
    """DOC"""

    resource_name: str = string()
    resource_type: int = int8(versions="1+", default=16)


class ListConfigResourcesResponse(Response, api_key=74, versions="0-1", flexible="0+"):
    """DOC"""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
