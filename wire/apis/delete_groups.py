"""DeleteGroups (key 42): delete groups without members."""

from __future__ import annotations

from kafkacompat.wire.entities import GROUP
from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, api_key=42, versions="0-2", flexible="2+"):
    """Delete the given groups and their offsets."""

    groups_names: list[str] = array(string(entity=GROUP))  # the ids of the groups


class DeletableGroupResult(Struct):
    """The outcome for one group."""

    group_id: str = string(entity=GROUP)
    error_code: int = int16()


class DeleteGroupsResponse(Response, api_key=42, versions="0-2", flexible="2+"):
    """The outcome for each group."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
