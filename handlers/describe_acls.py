"""DescribeAcls (key 29), v0-3: SECURITY_DISABLED, as Kafka returns without an authorizer.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_AUTHORIZER
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_describe_acls(
    request: DescribeAclsRequest, context: RequestContext, services: Services
) -> DescribeAclsResponse:
    """Return that there are no ACLs to describe."""
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
