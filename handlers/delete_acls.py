"""DeleteAcls (key 31), v0-3: remove the access rules that filters select.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources

Without an authorizer each filter gets SECURITY_DISABLED.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.handlers.acl_requests import NO_AUTHORIZER, parse_deletion
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.security.acls.model import Acl
from kafkacompat.wire.apis.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_delete_acls(
    request: DeleteAclsRequest, context: RequestContext, services: Services
) -> DeleteAclsResponse | Pending[DeleteAclsResponse]:
    """Remove the rules; answer when that is stored."""
    if services.authorizer is None:
        refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return DeleteAclsResponse(filter_results=[refusal] * len(request.filters))
    return answer_in_order(_delete_acls(request, services))


async def _delete_acls(request: DeleteAclsRequest, services: Services) -> DeleteAclsResponse:
    filters = [parse_deletion(wanted, services.instances) for wanted in request.filters]
    results: Sequence[list[Acl] | KafkaError]
    try:
        results = await services.controller.delete_acls(filters)
    except KafkaError as problem:
        results = [problem.with_traceback(None)] * len(filters)
    return DeleteAclsResponse(filter_results=[_build_result(result) for result in results])


def _build_result(result: list[Acl] | KafkaError) -> DeleteAclsFilterResult:
    if isinstance(result, KafkaError):
        return DeleteAclsFilterResult(error_code=result.code, error_message=result.detail)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission,
            )
            for pattern, rule in result
        ],
    )
