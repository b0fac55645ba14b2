"""CreateDelegationToken (key 38), v0-3: create a token that authenticates its owner for a limited time (KIP-48).

v2     flexible
v3     tokens for other owners (KIP-373)
"""

from __future__ import annotations

import logging
from random import Random

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.delegation_tokens import NO_TIMESTAMP_MS, acts_for, check_token_request
from kafkacompat.handlers.ordering import answer_in_order
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.token_changes import NewToken, TokenRules, create_token
from kafkacompat.security.acls.model import AclOperation
from kafkacompat.security.principals import Principal
from kafkacompat.security.tokens import TokenInfo
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import format_uuid, new_uuid

log = logging.getLogger(__name__)


def handle_create_delegation_token(
    request: CreateDelegationTokenRequest, context: RequestContext, services: Services
) -> Pending[CreateDelegationTokenResponse]:
    """Create a token for the requested owner, or for the requester if there is none."""
    return answer_in_order(_create_token(request, context, services))


async def _create_token(
    request: CreateDelegationTokenRequest, context: RequestContext, services: Services
) -> CreateDelegationTokenResponse:
    requester, owner = context.principal, _read_owner(request, context.principal)
    response = CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIMESTAMP_MS,
        expiry_timestamp_ms=NO_TIMESTAMP_MS,
        max_timestamp_ms=NO_TIMESTAMP_MS,
    )
    try:
        check_token_request(context, services)
        if not acts_for(context, AclOperation.CREATE_TOKENS, owner, services):
            reason = f"{requester} may not create tokens for {owner}"
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, reason)
        rules = TokenRules.read(services.config)
        token = await _commit(request, owner, requester, rules, services)
    except KafkaError as problem:
        response.error_code = problem.code
        return response
    log.info("Created delegation token %s of %s, requested by %s", token.token_id, owner, requester)
    response.issue_timestamp_ms = token.issued_at_ms
    response.expiry_timestamp_ms = token.expires_at_ms
    response.max_timestamp_ms = token.ends_at_ms
    response.token_id = token.token_id
    response.hmac = rules.compute_hmac(token.token_id)
    return response


async def _commit(
    request: CreateDelegationTokenRequest, owner: Principal, requester: Principal, rules: TokenRules, services: Services
) -> TokenInfo:
    renewers = [Principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers]

    def plan(draft: MetadataDraft, rng: Random) -> TokenInfo:
        token_id = format_uuid(new_uuid(rng))
        wanted = NewToken(token_id, owner, requester, renewers, request.max_lifetime_ms)
        return create_token(draft, rules, wanted, services.now_ms())

    return await services.controller.change_tokens(plan)


def _read_owner(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    if not request.owner_principal_name:
        return requester
    return Principal(request.owner_principal_type or "", request.owner_principal_name)
