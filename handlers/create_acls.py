"""CreateAcls (key 30), v0-3: add access rules.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources

One invalid rule leaves the others alone. Without an authorizer each of them gets SECURITY_DISABLED.
"""

from __future__ import annotations

from kafkacompat.handlers.acl_requests import NO_AUTHORIZER, parse_creation
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.security.acls.model import Acl
from kafkacompat.wire.apis.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError


def handle_create_acls(
    request: CreateAclsRequest, context: RequestContext, services: Services
) -> CreateAclsResponse | Pending[CreateAclsResponse]:
    """Add the valid rules; answer when they are stored."""
    if services.authorizer is None:
        refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
        return CreateAclsResponse(results=[refusal] * len(request.creations))
    return answer_in_order(_create_acls(request, services))


async def _create_acls(request: CreateAclsRequest, services: Services) -> CreateAclsResponse:
    results = [AclCreationResult(error_message=None) for _ in request.creations]
    valid: dict[int, Acl] = {}
    for index, creation in enumerate(request.creations):
        try:
            valid[index] = parse_creation(creation, services.instances)
        except KafkaError as problem:
            _fill_error(results[index], problem)
    try:
        await services.controller.create_acls(list(valid.values()))
    except KafkaError as problem:
        for index in valid:
            _fill_error(results[index], problem)
    return CreateAclsResponse(results=results)


def _fill_error(result: AclCreationResult, problem: KafkaError) -> None:
    result.error_code, result.error_message = problem.code, problem.detail
