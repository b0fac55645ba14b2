"""ConsumerGroupDescribe (key 69), v0-1: consumer groups with their members (KIP-848).

v1 names the protocol of each member. A group that the request names several times is described once.
"""

from __future__ import annotations

from kafkacompat.handlers.authorized_operations import GROUP_OPERATIONS
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle_consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext, services: Services
) -> ConsumerGroupDescribeResponse:
    """Describe each group."""

    def describe(group_id: str) -> DescribedGroup:
        group = services.coordinators.groups.describe_consumer_group(group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
        return group

    return ConsumerGroupDescribeResponse(groups=[describe(group_id) for group_id in dict.fromkeys(request.group_ids)])
