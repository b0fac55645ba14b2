"""ListGroups (key 16), v0-5: the groups that this broker coordinates.

v1 adds the throttle time, v3 is flexible, v4 adds states and a filter by them (KIP-518), v5 types (KIP-848).
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_list_groups(request: ListGroupsRequest, context: RequestContext, services: Services) -> ListGroupsResponse:
    """List the groups."""
    groups = services.coordinators.groups.list(request.states_filter, request.types_filter)
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups)
    return ListGroupsResponse(groups=groups)
