"""DescribeAcls (key 29), v0-3: the access rules that a filter selects.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources

Without an authorizer the answer is SECURITY_DISABLED.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred

from kafkacompat.handlers.acl_requests import NO_AUTHORIZER, parse_filter
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.security.acls.filters import AclFilter
from kafkacompat.security.acls.model import Acl, AclPattern
from kafkacompat.timers import yield_in_turns
from kafkacompat.wire.apis.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from kafkacompat.wire.errors import ErrorCode


def handle_describe_acls(
    request: DescribeAclsRequest, context: RequestContext, services: Services
) -> DescribeAclsResponse | Pending[DescribeAclsResponse]:
    """Return the rules, grouped by resource."""
    if services.authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return Pending(Deferred.fromCoroutine(_describe_acls(request, context, services)))


async def _describe_acls(
    request: DescribeAclsRequest, context: RequestContext, services: Services
) -> DescribeAclsResponse:
    wanted = parse_filter(request)
    wanted.check()
    resources: dict[AclPattern, DescribeAclsResource] = {}
    async for acl in yield_in_turns(services.clock, _select_rules(wanted, context, services)):
        if acl is None:
            continue
        pattern, rule = acl
        if pattern not in resources:
            resources[pattern] = DescribeAclsResource(
                resource_type=pattern.resource_type, resource_name=pattern.name, pattern_type=pattern.pattern_type
            )
        resources[pattern].acls.append(
            AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def _select_rules(wanted: AclFilter, context: RequestContext, services: Services) -> Iterator[Acl | None]:
    table, tenant = services.metadata.image.acls, context.tenant
    return wanted.find(table) if tenant is None else tenant.acl_names.select(wanted, table)
