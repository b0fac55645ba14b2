"""DeleteGroups (key 42), v0-2: delete empty groups and their offsets. v2 is flexible."""

from __future__ import annotations

from functools import partial

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.waiting import answer_when_ready
from kafkacompat.wire.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_delete_groups(
    request: DeleteGroupsRequest, context: RequestContext, services: Services
) -> DeleteGroupsResponse | Pending[DeleteGroupsResponse]:
    """Delete each group; answer when their tombstones are in the log."""
    group_ids = list(dict.fromkeys(request.groups_names))
    outcomes = [services.coordinators.groups.delete(group_id) for group_id in group_ids]
    return answer_when_ready(outcomes, partial(_build_response, group_ids))


def _build_response(group_ids: list[str], codes: list[ErrorCode]) -> DeleteGroupsResponse:
    results = [
        DeletableGroupResult(group_id=group_id, error_code=code)
        for group_id, code in zip(group_ids, codes, strict=True)
    ]
    return DeleteGroupsResponse(results=results)
