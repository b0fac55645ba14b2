"""DeleteGroups (key 42): remove groups that have no members."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, api_key=42, versions="0-2", flexible="2+"):
    """Delete these groups with their offsets."""

    groups_names: list[str] = array(string())  # ids


class DeletableGroupResult(Struct):
    """The outcome for one group."""

    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Response, api_key=42, versions="0-2", flexible="2+"):
    """Which groups are gone."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
