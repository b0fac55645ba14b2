"""CreateAcls (key 30), v0-3: SECURITY_DISABLED for each, as Kafka returns without an authorizer.

v1     prefixed patterns (KIP-290)
v2     flexible
v3     users as resources
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.security_disabled import NO_AUTHORIZER
from kafkacompat.wire.apis.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.errors import ErrorCode


def handle_create_acls(request: CreateAclsRequest, context: RequestContext, services: Services) -> CreateAclsResponse:
    """Reject every ACL, as no authorizer would check it."""
    refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refusal] * len(request.creations))
