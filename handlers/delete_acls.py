"""DeleteAcls (key 31), v0-3: SECURITY_DISABLED for each filter, as Kafka returns without an authorizer.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_AUTHORIZER
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_delete_acls(request: DeleteAclsRequest, context: RequestContext, services: Services) -> DeleteAclsResponse:
    """Return for each filter that there are no ACLs to delete."""
    refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refusal] * len(request.filters))
