"""FindCoordinator (key 10): find the broker that coordinates a group or a transaction."""

from __future__ import annotations

from kafkacompat.wire.entities import BROKER, COORDINATOR_KEY, TEXT
from kafkacompat.wire.schema import Request, Response, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, api_key=10, versions="0-6", flexible="3+"):
    """Request the coordinator of one key (up to version 3) or of several (from 4)."""

    # a group id, a transactional id or, for a share group, group_id:topic_id:partition
    key: str = string(versions="0-3", entity=COORDINATOR_KEY)
    key_type: int = int8(versions="1+")  # 0: group, 1: transaction, 2: share group
    coordinator_keys: list[str] = array(string(entity=COORDINATOR_KEY), versions="4+")  # keys in the form of key


class Coordinator(Struct):
    """The coordinator of one key."""

    key: str = string(entity=COORDINATOR_KEY)  # the key from the request
    node_id: int = int32(entity=BROKER)  # -1 if the request fails
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", entity=TEXT)


class FindCoordinatorResponse(Response, api_key=10, versions="0-6", flexible="3+"):
    """The coordinator (up to version 3) or the coordinators (from 4)."""

    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="0+", entity=TEXT)
    node_id: int = int32(versions="0-3", entity=BROKER)  # -1 if the request fails
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
