"""ConsumerGroupDescribe (key 69), v0-1: consumer groups with their members (KIP-848).

v1 names the protocol of each member. A group that the request names several times is described once.
"""

from __future__ import annotations

from kafkacompat.handlers.authorized_operations import GROUP_OPERATIONS
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle_consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext, services: Services
) -> Pending[ConsumerGroupDescribeResponse]:
    """Describe each group once, as a group may be much larger than its name."""
    return answer_in_order(_describe_groups(request, services))


async def _describe_groups(request: ConsumerGroupDescribeRequest, services: Services) -> ConsumerGroupDescribeResponse:
    names = dict.fromkeys(request.group_ids)
    described = [await _describe_group(name, request, services) async for name in yield_in_turns(services.clock, names)]
    return ConsumerGroupDescribeResponse(groups=described)


async def _describe_group(name: str, request: ConsumerGroupDescribeRequest, services: Services) -> DescribedGroup:
    group, members = services.coordinators.groups.describe_consumer_group(name)
    group.members = [member async for member in yield_in_turns(services.clock, members)]
    if request.include_authorized_operations and not group.error_code:
        group.authorized_operations = GROUP_OPERATIONS
    return group
