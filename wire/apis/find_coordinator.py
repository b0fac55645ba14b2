"""FindCoordinator (key 10): which broker coordinates a group or a transaction."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, api_key=10, versions="0-6", flexible="3+"):
    """Who coordinates this key (up to version 3), or these keys (from 4)?"""

    key: str = string(versions="0-3")  # group id or transactional id; of a share group: group_id:topic_id:partition
    key_type: int = int8(versions="1+")  # 0: group, 1: transaction, 2: share group
    coordinator_keys: list[str] = array(string(), versions="4+")  # as key


class Coordinator(Struct):
    """The coordinator of one key."""

    key: str = string()  # the value of the request
    node_id: int = int32()  # -1 if the request fails
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class FindCoordinatorResponse(Response, api_key=10, versions="0-6", flexible="3+"):
    """The coordinator, or the coordinators from version 4."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="0+")
    node_id: int = int32(versions="0-3")  # -1 if the request fails
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
