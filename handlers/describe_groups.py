"""DescribeGroups (key 15), v0-6: groups with their members.

v1 adds the throttle time, v3 the authorized operations (KIP-430), v4 instance ids (KIP-345); v5 is flexible. From v6 on
an unknown group is an error (KIP-1043); earlier versions report it as Dead.

A group that the request names several times is described once.
"""

from __future__ import annotations

from kafkacompat.handlers.authorized_operations import GROUP_OPERATIONS
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.errors import ErrorCode

NOT_FOUND_VERSION = 6


def handle_describe_groups(
    request: DescribeGroupsRequest, context: RequestContext, services: Services
) -> DescribeGroupsResponse:
    """Describe each group."""
    groups = [services.coordinators.groups.describe(group_id) for group_id in dict.fromkeys(request.groups)]
    for group in groups:
        _adapt_to_version(group, request, context.api_version)
    return DescribeGroupsResponse(groups=groups)


def _adapt_to_version(group: DescribedGroup, request: DescribeGroupsRequest, version: int) -> None:
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND and version < NOT_FOUND_VERSION:
        group.error_code = ErrorCode.NONE
    if request.include_authorized_operations and not group.error_code:
        group.authorized_operations = GROUP_OPERATIONS
