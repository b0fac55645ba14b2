"""ListGroups (key 16), v0-5: the groups that this broker coordinates.

v1 adds the throttle time, v3 is flexible, v4 adds states and a filter by them (KIP-518), v5 types (KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_list_groups(
    request: ListGroupsRequest, context: RequestContext, services: Services
) -> ListGroupsResponse | Pending[ListGroupsResponse]:
    """List the groups in turns, as there may be a hundred thousand."""
    groups = services.coordinators.groups.list_in_steps(request.states_filter, request.types_filter)
    if isinstance(groups, ErrorCode):
        return ListGroupsResponse(error_code=groups)
    return answer_in_order(_list_groups(groups, services))


async def _list_groups(groups: Iterator[ListedGroup | None], services: Services) -> ListGroupsResponse:
    listed = [group async for group in yield_in_turns(services.clock, groups) if group is not None]
    return ListGroupsResponse(groups=listed)
